import type { BufferSlice } from "./bufferPool";
import type { Grid } from "./dispatchGrid";
import type { FinishedWork } from "./finishedWork";
import { type Kernel, uniformBlockBytes } from "./pipelineCache";
import type { Profiler } from "./profiler";
import type { GpuStats } from "./stats";

/** A submit that runs longer than this makes the person's screen stutter. */
const submitMilliseconds = 50;
/** Work a millisecond before anything was measured: what a software adapter manages. Also the least that is believed. */
const initialRate = 1_000_000;
/** Submits that may wait on the GPU before whoever makes more should wait. */
const submitsAhead = 16;
const arenaBlocks = 1024;

/**
 * Batches dispatches and copies into few submits. Uniform blocks go into one arena with dynamic offsets, uploaded with
 * one write a submit. A submit is cut where the work recorded so far would take about 50 ms at the measured rate.
 */
export class Recorder {
  readonly arena: GPUBuffer;
  /** While there is one, each dispatch has a pass of its own, which it times. */
  profiler: Profiler | null = null;
  private readonly blocks = new Uint32Array((arenaBlocks * uniformBlockBytes) / 4);
  private readonly dynamicOffset = new Uint32Array(1);
  private encoder: GPUCommandEncoder | null = null;
  private pass: GPUComputePassEncoder | null = null;
  /** The one whose pipeline the pass has. */
  private kernel: Kernel | null = null;
  private usedBlocks = 0;
  private work = 0;
  private rate = initialRate;
  private inFlight = 0;
  private lastDone = 0;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly gpu: GPUDevice,
    private readonly stats: GpuStats,
    private readonly finished: FinishedWork,
  ) {
    this.arena = gpu.createBuffer({
      label: "uniform arena",
      size: this.blocks.byteLength,
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    stats.buffers += 1;
    stats.bytes += this.blocks.byteLength;
  }

  /**
   * Records one dispatch of a compiled kernel.
   * @param uniforms the words of its block; copied.
   * @param work an estimate of its cost in operations, by which submits are cut.
   */
  dispatch(kernel: Kernel, bindGroup: GPUBindGroup, uniforms: Uint32Array, grid: Grid, work: number): void {
    if (this.usedBlocks === arenaBlocks || (this.work > 0 && this.work + work > this.rate * submitMilliseconds))
      this.submit();
    const block = this.usedBlocks++;
    this.blocks.set(uniforms, (block * uniformBlockBytes) / 4);
    if (this.profiler) this.beginTimedPass(this.profiler);
    this.pass ??= this.commands().beginComputePass();
    this.dynamicOffset[0] = block * uniformBlockBytes;
    if (kernel !== this.kernel) this.pass.setPipeline(kernel.pipeline!);
    this.kernel = kernel;
    this.pass.setBindGroup(0, bindGroup, this.dynamicOffset, 0, 1);
    this.pass.dispatchWorkgroups(grid[0], grid[1], grid[2]);
    this.work += work;
    this.stats.dispatches += 1;
  }

  /** Copies `bytes` bytes between two different buffers. */
  copy(source: GPUBuffer, sourceOffset: number, target: GPUBuffer, targetOffset: number, bytes: number): void {
    this.endPass();
    this.commands().copyBufferToBuffer(source, sourceOffset, target, targetOffset, bytes);
    this.work += bytes / 4;
  }

  /** Fills a slice with zero bytes. */
  clear(slice: BufferSlice): void {
    this.endPass();
    this.commands().clearBuffer(slice.buffer.gpu, slice.offset, slice.size);
    this.work += slice.size / 4;
  }

  /** Hands everything recorded to the GPU. */
  submit(): void {
    if (!this.encoder) return;
    this.endPass();
    const commands = this.encoder.finish();
    this.encoder = null;
    if (this.usedBlocks > 0)
      this.gpu.queue.writeBuffer(this.arena, 0, this.blocks, 0, (this.usedBlocks * uniformBlockBytes) / 4);
    this.gpu.queue.submit([commands]);
    this.stats.submits += 1;
    this.watch(this.work);
    this.usedBlocks = 0;
    this.work = 0;
  }

  /** Null while the GPU is not far behind; otherwise resolves when it has caught up by a submit. */
  room(): Promise<void> | null {
    if (this.inFlight <= submitsAhead) return null;
    return this.finished.wait(new Promise((resolve) => this.waiting.push(resolve)));
  }

  private commands(): GPUCommandEncoder {
    this.encoder ??= this.gpu.createCommandEncoder();
    return this.encoder;
  }

  private beginTimedPass(profiler: Profiler): void {
    this.endPass();
    this.pass = this.commands().beginComputePass({ timestampWrites: profiler.next() });
  }

  private endPass(): void {
    this.pass?.end();
    this.pass = null;
    this.kernel = null;
  }

  /** Learns the rate from when a submit ends: it ran since its submission, or since the one before it ended. */
  private watch(work: number): void {
    const submitted = performance.now();
    this.inFlight += 1;
    const done = () => {
      const now = performance.now();
      const milliseconds = now - Math.max(submitted, this.lastDone);
      this.lastDone = now;
      this.inFlight -= 1;
      // A short submit tells more of overhead than of work.
      if (work > this.rate || milliseconds > 2) {
        const measured = work / Math.max(milliseconds, 0.25);
        this.rate = Math.max(initialRate, this.rate + 0.3 * (measured - this.rate));
      }
      for (const resume of this.waiting.splice(0)) resume();
    };
    this.gpu.queue.onSubmittedWorkDone().then(done, done);
  }
}

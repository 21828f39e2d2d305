import type { BufferPool, BufferSlice, PooledBuffer } from "./bufferPool";
import type { FinishedWork } from "./finishedWork";
import type { Recorder } from "./recorder";

/** What is known of a device's health. */
export interface FaultReport {
  /** Throws if the device has failed. */
  check(): void;
  /** The error behind a read that was rejected. */
  explain(reason: unknown): Error;
}

/** Reads GPU memory through pooled staging buffers; several reads may be under way at once. */
export class Readback {
  constructor(
    private readonly recorder: Recorder,
    private readonly staging: BufferPool,
    private readonly faults: FaultReport,
    private readonly work: FinishedWork,
  ) {}

  /**
   * Records the copy of a slice's first `bytes` bytes. Call `finish` on the result after the recorder was submitted.
   */
  start(slice: BufferSlice, bytes: number): PendingRead {
    const buffer = this.staging.acquire(bytes, `a read of ${bytes} bytes`);
    if (bytes > 0) this.recorder.copy(slice.buffer.gpu, slice.offset, buffer.gpu, 0, bytes);
    return new PendingRead(buffer, bytes, this.staging, this.faults, this.work);
  }
}

/** A read whose copy is recorded. */
export class PendingRead {
  constructor(
    private readonly buffer: PooledBuffer,
    private readonly bytes: number,
    private readonly staging: BufferPool,
    private readonly faults: FaultReport,
    private readonly work: FinishedWork,
  ) {}

  /** Waits for the GPU and gives the bytes to `use`, which must copy what it keeps. Rejects when the device is lost. */
  async finish<T>(use: (bytes: ArrayBuffer) => T): Promise<T> {
    const { gpu } = this.buffer;
    const mapped = Math.max(8, this.bytes);
    try {
      await this.work.wait(gpu.mapAsync(GPUMapMode.READ, 0, Math.ceil(mapped / 8) * 8));
    } catch (reason) {
      throw this.faults.explain(reason);
    }
    try {
      this.faults.check();
      return use(gpu.getMappedRange(0, Math.ceil(mapped / 8) * 8));
    } finally {
      gpu.unmap();
      this.staging.release(this.buffer);
    }
  }
}

import { GpuError } from "./errors";

/** Dispatches that one query set has room for: two timestamps each, of 4,096. */
const dispatchesPerSet = 2048;
const bytesPerTimestamp = 8;

/** Takes the GPU's time before and after each dispatch, where the device has timestamps. Made for one use. */
export class Profiler {
  private readonly sets: GPUQuerySet[] = [];
  private count = 0;

  /** @throws GpuError where the device has no timestamps. */
  constructor(private readonly gpu: GPUDevice) {
    if (!gpu.features.has("timestamp-query"))
      throw new GpuError(
        "This device can't time kernels: it has no timestamps (WebGPU's feature timestamp-query). " +
          "Use a browser and a graphics driver that have them, and let requestDevice() make the device.",
      );
  }

  /** Where the pass of the next dispatch puts its two timestamps. */
  next(): GPUComputePassTimestampWrites {
    const index = this.count++ % dispatchesPerSet;
    if (index === 0) this.sets.push(this.gpu.createQuerySet({ type: "timestamp", count: 2 * dispatchesPerSet }));
    return {
      querySet: this.sets.at(-1)!,
      beginningOfPassWriteIndex: 2 * index,
      endOfPassWriteIndex: 2 * index + 1,
    };
  }

  /** The milliseconds of each dispatch, once all of them were submitted. */
  async finish(): Promise<number[]> {
    if (this.count === 0) return [];
    const setBytes = 2 * dispatchesPerSet * bytesPerTimestamp;
    const size = this.sets.length * setBytes;
    const resolved = this.gpu.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    const staging = this.gpu.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = this.gpu.createCommandEncoder();
    for (const [i, set] of this.sets.entries()) {
      const dispatches = Math.min(this.count - i * dispatchesPerSet, dispatchesPerSet);
      encoder.resolveQuerySet(set, 0, 2 * dispatches, resolved, i * setBytes);
    }
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
    this.gpu.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const timestamps = new BigInt64Array(staging.getMappedRange());
    const milliseconds = Array.from(
      { length: this.count },
      // Timestamps may run backwards where the GPU changes its clock.
      (_, i) => Math.max(0, Number(timestamps[2 * i + 1]! - timestamps[2 * i]!) / 1e6),
    );
    staging.destroy();
    resolved.destroy();
    for (const set of this.sets) set.destroy();
    return milliseconds;
  }
}

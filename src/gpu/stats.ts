/** Counts of what a device has created and submitted. A training step after warm-up raises only `dispatches` and `submits`. */
export class GpuStats {
  /** GPU buffers created so far. */
  buffers = 0;
  /** Bytes of GPU buffers that exist now. */
  bytes = 0;
  pipelines = 0;
  bindGroups = 0;
  dispatches = 0;
  submits = 0;

  /** A copy of the counters, to compare with a later one. */
  snapshot(): GpuCounters {
    const { buffers, bytes, pipelines, bindGroups, dispatches, submits } = this;
    return { buffers, bytes, pipelines, bindGroups, dispatches, submits };
  }
}

export interface GpuCounters {
  readonly buffers: number;
  readonly bytes: number;
  readonly pipelines: number;
  readonly bindGroups: number;
  readonly dispatches: number;
  readonly submits: number;
}

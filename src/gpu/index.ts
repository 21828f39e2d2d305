export { type BufferSlice, PooledBuffer, sizeClass } from "./bufferPool";
export { type AdapterInfo, Device, requestDevice } from "./device";
export { type Grid, maxWorkgroups, spread } from "./dispatchGrid";
export { DeviceLostError, GpuError } from "./errors";
export { type Access, type Kernel, type Shader, uniformBlockBytes } from "./pipelineCache";
export { Profiler } from "./profiler";
export type { PendingRead } from "./readback";
export type { GpuCounters, GpuStats } from "./stats";

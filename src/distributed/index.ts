export { type AllReduceAlgorithm, chooseAllReduce } from "./algorithms/choose";
export { recursiveDoubling } from "./algorithms/doubling";
export { ringAllReduce } from "./algorithms/ring";
export { type Backend, type RendezvousOptions, registerBackend } from "./backends";
export { allReduceHook, type CommHook, type GradBucket } from "./commHooks";
export { type PowerSgdOptions, powerSgdHook } from "./commHooksPowerSgd";
export { bf16CompressHook, fp16CompressHook, type Int8HookOptions, int8CompressHook } from "./commHooksQuantized";
export { type TopKHookOptions, topKHook } from "./commHooksTopK";
export {
  createProcessGroup,
  destroyProcessGroup,
  getProcessGroup,
  type InitOptions,
  initProcessGroup,
  isInitialized,
} from "./defaultGroup";
export {
  type AverageOptions,
  averageGradients,
  DistributedDataParallel,
  type DistributedDataParallelOptions,
} from "./distributedDataParallel";
export { DistributedSampler, type DistributedSamplerOptions } from "./distributedSampler";
export { type Environment, env } from "./environment";
export type { OperationTag } from "./exchange";
export { Float16Bits } from "./float16";
export type { Meeting } from "./formWorld";
export * from "./functions";
export { GradScaler, type GradScalerOptions, type GradScalerState, type ScaledOptimizer } from "./gradScaler";
export { type Joinable, type JoinOptions, runJoined } from "./join";
export { type PointToPoint, ProcessGroup, type ProcessGroupOptions } from "./processGroup";
export type { ReduceOp } from "./reduceOp";
export { Ring, type RingOptions } from "./ring";
export type { Schedule } from "./schedule";
export type { Store } from "./store";
export { convertSyncBatchNorm, SyncBatchNorm } from "./syncBatchNorm";
export type { Values } from "./values";
export { CollectiveError, type Work } from "./work";
export {
  ZeroRedundancyOptimizer,
  type ZeroRedundancyOptions,
  type ZeroRedundancyStepOptions,
} from "./zeroRedundancyOptimizer";
export type { WholeOptimizerState } from "./zeroRedundancyOptimizerShards";

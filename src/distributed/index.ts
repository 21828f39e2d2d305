export { type AllReduceAlgorithm, chooseAllReduce } from "./algorithms/choose";
export { recursiveDoubling } from "./algorithms/doubling";
export { ringAllReduce } from "./algorithms/ring";
export { type Backend, type RendezvousOptions, registerBackend } from "./backends";
export {
  createProcessGroup,
  destroyProcessGroup,
  getProcessGroup,
  type InitOptions,
  initProcessGroup,
  isInitialized,
} from "./defaultGroup";
export { averageGradients, DistributedDataParallel } from "./distributedDataParallel";
export { type Environment, env } from "./environment";
export type { OperationTag } from "./exchange";
export { Float16Bits } from "./float16";
export type { Meeting } from "./formWorld";
export * from "./functions";
export { type PointToPoint, ProcessGroup, type ProcessGroupOptions } from "./processGroup";
export type { ReduceOp } from "./reduceOp";
export { Ring, type RingOptions } from "./ring";
export type { Schedule } from "./schedule";
export type { Store } from "./store";
export type { Values } from "./values";
export { CollectiveError, type Work } from "./work";

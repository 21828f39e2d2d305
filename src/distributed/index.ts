export {
  allReduce,
  barrier,
  broadcast,
  createProcessGroup,
  destroyProcessGroup,
  getProcessGroup,
  getRank,
  getWorldSize,
  type InitOptions,
  initProcessGroup,
  isInitialized,
  recv,
  send,
} from "./defaultGroup";
export { averageGradients, DistributedDataParallel } from "./distributedDataParallel";
export { type Environment, env } from "./environment";
export type { OperationTag } from "./exchange";
export type { Meeting } from "./formWorld";
export { type PointToPoint, ProcessGroup, type ProcessGroupOptions } from "./processGroup";
export type { ReduceOp } from "./reduceOp";
export { Ring, type RingOptions } from "./ring";
export type { Values } from "./values";
export { CollectiveError, type Work } from "./work";

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
export { ProcessGroup, type ProcessGroupOptions, type ReduceOp, type Values } from "./processGroup";
export { Ring, type RingOptions } from "./ring";
export { CollectiveError, type Work } from "./work";

export { FlatOptimizer } from "./flatOptimizer";
export { OffloadedOptimizer } from "./offloaded";
export {
  Adam,
  AdamW,
  Optimizer,
  type OptimizerGroup,
  type OptimizerState,
  type ParameterGroup,
  SGD,
} from "./optimizer";
export {
  type AdamOptions,
  type AdamSpec,
  adam,
  adamw,
  type OptimizerName,
  type OptimizerSpec,
  parseOptimizerSpec,
  type SgdOptions,
  type SgdSpec,
  sgd,
} from "./spec";
export { type StateArray, stateLayout } from "./updateRule";

export { type ClipNormOptions, clipGradNorm_, clipGradValue_ } from "./clip";
export { FlatOptimizer } from "./flatOptimizer";
export { GradScaler, type GradScalerOptions } from "./gradScaler";
export { MovingAverage } from "./movingAverage";
export { OffloadedOptimizer } from "./offloaded";
export {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  type GroupSpec,
  Lion,
  Muon,
  NAdam,
  Optimizer,
  type OptimizerGroup,
  type OptimizerState,
  type ParameterGroup,
  RAdam,
  RMSprop,
  SGD,
} from "./optimizer";
export * from "./schedule";
export {
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  LRScheduler,
  MultiStepLR,
  OneCycleLR,
  type PlateauOptions,
  PolynomialLR,
  ReduceLROnPlateau,
  SequentialLR,
  StepLR,
} from "./scheduler";
export * from "./spec";
export { type StateArray, stateLayout } from "./updateRule";

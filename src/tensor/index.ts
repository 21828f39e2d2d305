import "./methods";

export { type AutocastOptions, autocast, isAutocastEnabled } from "./autocast";
export { backward, type GradOptions, grad, registerPostAccumulateGradHook } from "./autograd";
export { changeDtype_ } from "./changeDtype";
export { checkpoint } from "./checkpoint";
export { compile, type StepArgument } from "./compile";
export type { DType, NarrowType, TypedArray } from "./dtype";
export { FlatParameters, type ParameterEntry, type ParameterLayout } from "./flatParameters";
export * from "./functional";
export * from "./functions";
export { type GradientHook, registerHook } from "./gradientHooks";
export { type UpdateFormula, update_ } from "./operators/update";
export { explain, flush, getDevice, readAsComputed, setDefaultDevice } from "./runtime";
export { OperatorError, type Shape } from "./shape";
export { type NestedArray, type NestedNumbers, Tensor, type TensorOptions, tensor } from "./tensor";
export { throughHost } from "./throughHost";
export { liveScalars, observed } from "./trace";
export { zeroGradients } from "./zeroGradients";

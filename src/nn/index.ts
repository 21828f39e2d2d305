export { ModuleList, Sequential } from "./containers";
export * as functional from "./functional";
export * as init from "./init";
export {
  AvgPool2d,
  Conv2d,
  type Conv2dLayerOptions,
  Flatten,
  GELU,
  Identity,
  Linear,
  type LinearOptions,
  MaxPool2d,
  ReLU,
  Sigmoid,
  Tanh,
} from "./layers";
export { CrossEntropyLoss, MSELoss, NLLLoss } from "./loss";
export { type LoadOptions, type LoadResult, Module, parameter, type TensorValue } from "./module";
export {
  BatchNorm1d,
  BatchNorm2d,
  type BatchNormLayerOptions,
  GroupNorm,
  LayerNorm,
  type NormOptions,
} from "./normalization";

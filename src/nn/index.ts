export * from "./activation";
export { type AttendOptions, MultiheadAttention, type MultiheadAttentionOptions } from "./attention";
export { ModuleDict, ModuleList, ParameterList, Sequential } from "./containers";
export {
  Conv1d,
  type Conv1dLayerOptions,
  Conv2d,
  type Conv2dLayerOptions,
  ConvTranspose1d,
  ConvTranspose2d,
  type ConvTransposeLayerOptions,
} from "./convolution";
export { AlphaDropout, Dropout, Dropout1d, Dropout2d, FeatureAlphaDropout } from "./dropout";
export { Embedding, EmbeddingBag, type EmbeddingBagLayerOptions } from "./embedding";
export * as functional from "./functional";
export type { BackwardHook, BackwardPreHook, ForwardHook, ForwardPreHook } from "./hooks";
export * as init from "./init";
export {
  Bilinear,
  CosineSimilarity,
  Flatten,
  Identity,
  Linear,
  type LinearOptions,
  PairwiseDistance,
  Unflatten,
} from "./layers";
export * from "./loss";
export {
  type LoadOptions,
  type LoadResult,
  Module,
  parameter,
  type TensorValue,
} from "./module";
export {
  BatchNorm1d,
  BatchNorm2d,
  type BatchNormLayerOptions,
  GroupNorm,
  InstanceNorm1d,
  InstanceNorm2d,
  type InstanceNormLayerOptions,
  LayerNorm,
  LocalResponseNorm,
  type NormOptions,
  RMSNorm,
  type RMSNormOptions,
} from "./normalization";
export * from "./pooling";
export { type StepDraws, withDraws } from "./randomness";
export * from "./rearrange";
export {
  GRU,
  GRUCell,
  LSTM,
  LSTMCell,
  type RecurrentOptions,
  type RecurrentResult,
  RNN,
  RNNCell,
  type RnnOptions,
} from "./recurrent";
export {
  TransformerDecoder,
  TransformerDecoderLayer,
  TransformerEncoder,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from "./transformer";

/** What PyTorch has in torch.nn.functional and Ringlet makes of the operators in `functions.ts`. */
export {
  celu,
  elu,
  glu,
  hardshrink,
  hardsigmoid,
  hardswish,
  hardtanh,
  leakyRelu,
  logsigmoid,
  mish,
  prelu,
  relu6,
  rrelu,
  selu,
  silu,
  softmin,
  softplus,
  softshrink,
  softsign,
  tanhshrink,
  threshold,
} from "./operators/activations";
export {
  type AdaptiveSize,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveMaxPool1d,
  adaptiveMaxPool1dWithIndices,
  adaptiveMaxPool2d,
  adaptiveMaxPool2dWithIndices,
  type PoolWithIndices,
} from "./operators/adaptivePooling";
export {
  type AttentionOptions,
  attentionWithWeights,
  causalMask,
  type PackedAttentionOptions,
  packedSelfAttention,
  scaledDotProductAttention,
} from "./operators/attention";
export { bilinear } from "./operators/bilinear";
export {
  type Conv1dOptions,
  type ConvTransposeOptions,
  conv1d,
  convTranspose1d,
  convTranspose2d,
} from "./operators/convolutionVariants";
export { cosineSimilarity, normalize, pairwiseDistance } from "./operators/distances";
export { type EmbeddingOptions, embedding } from "./operators/embedding";
export { type EmbeddingBagOptions, embeddingBag } from "./operators/embeddingBag";
export { type InstanceNormOptions, instanceNorm, rmsNorm } from "./operators/instanceNorm";
export { type InterpolateOptions, type InterpolationMode, interpolate } from "./operators/interpolate";
export {
  type BinaryCrossEntropyWithLogitsOptions,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  cosineEmbeddingLoss,
  type GaussianOptions,
  gaussianNllLoss,
  type HuberOptions,
  hingeEmbeddingLoss,
  huberLoss,
  type KlDivOptions,
  klDiv,
  type LossOptions,
  l1Loss,
  type MarginOptions,
  marginRankingLoss,
  mseLoss,
  multilabelSoftMarginLoss,
  type PoissonOptions,
  poissonNllLoss,
  reduceLoss,
  type SmoothL1Options,
  smoothL1Loss,
  softMarginLoss,
  type TripletOptions,
  tripletMarginLoss,
  type WeightedLossOptions,
} from "./operators/losses";
export { type PaddingMode, pad } from "./operators/pad";
export { pixelShuffle, pixelUnshuffle } from "./operators/pixelShuffle";
export {
  type AvgPool1dOptions,
  avgPool1d,
  type MaxPool1dOptions,
  maxPool1d,
  maxPool1dWithIndices,
} from "./operators/pooling1d";
export {
  lpPool1d,
  lpPool2d,
  type MaxUnpoolOptions,
  maxUnpool1d,
  maxUnpool2d,
  type PowerPoolOptions,
} from "./operators/poolingVariants";
export {
  fold,
  type LocalResponseNormOptions,
  localResponseNorm,
  type SlidingWindowOptions,
  unfold,
} from "./operators/slidingWindow";

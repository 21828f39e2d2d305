/** Every public operation on tensors, by PyTorch's names in camelCase. */
export { noGrad } from "./apply";
export { type Conv2dOptions, conv2d } from "./operators/convolution";
export {
  arange,
  type CreationOptions,
  full,
  manualSeed,
  nextRandomStream,
  ones,
  onesLike,
  type RandomOptions,
  rand,
  randAnew,
  randn,
  zeros,
  zerosLike,
} from "./operators/creation";
export {
  type CrossEntropyOptions,
  crossEntropyLoss as crossEntropy,
  type NllLossOptions,
  nllLoss,
  type Reduction,
} from "./operators/crossEntropy";
export { cumprod, cumsum } from "./operators/cumulative";
export { einsum } from "./operators/einsum";
export * from "./operators/elementwise";
export { exp2, expm1, log1p, log2, log10, logaddexp, xlogy } from "./operators/exponential";
export { max, min } from "./operators/extremes";
export { type Index, index, type Slice, slice } from "./operators/getItem";
export { gather, indexAdd, indexSelect, scatter, scatterAdd, takeAlongDim } from "./operators/indexing";
export { accumulate_, copy_ } from "./operators/inPlace";
export { layerNorm } from "./operators/layerNorm";
export { addbmm, addmm, addmv, baddbmm, type Factors, inner, outer, tensordot } from "./operators/linearAlgebra";
export { bmm, dot, linear, type MatmulOptions, matmul, mm, mv } from "./operators/matrix";
export {
  type AffineOptions,
  type BatchNormOptions,
  batchNorm,
  groupNorm,
} from "./operators/normalization";
export { norm, vectorNorm } from "./operators/norms";
export {
  type AvgPool2dOptions,
  avgPool2d,
  type MaxPool2dOptions,
  maxPool2d,
  maxPool2dWithIndices,
} from "./operators/pooling";
export {
  chunk,
  constantPadNd,
  diag,
  diagonal,
  flip,
  movedim,
  repeat,
  roll,
  split,
  splitWithSizes,
  strided,
  tile,
  tril,
  triu,
  unbind,
  unflatten,
} from "./operators/rearranging";
export {
  amax,
  amin,
  argmax,
  argmin,
  logsumexp,
  mean,
  sum,
  type VarianceOptions,
  variance as var_,
} from "./operators/reduction";
export { ceil, floorDivide, fmod, frac, remainder, round, truncDivide } from "./operators/rounding";
export {
  indexAsync,
  maskedSelect,
  nonzero,
  repeatInterleave,
  type Unique,
  uniqueConsecutive,
} from "./operators/selection";
export { logSoftmax, softmaxOver as softmax } from "./operators/softmax";
export {
  argsort,
  kthvalue,
  median,
  msort,
  type SearchOptions,
  type Sorted,
  searchsorted,
  sort,
  topk,
} from "./operators/sorting";
export {
  addcdiv,
  addcmul,
  fmax,
  fmin,
  hypot,
  isfinite,
  isinf,
  lerp,
  logicalXor,
  maskedFill,
  nanToNum,
  square,
} from "./operators/special";
export { all, any, countNonzero, nansum, prod, std, stdMean, varMean } from "./operators/statistics";
export { acos, asin, atan, atan2, cosh, sinh, tan } from "./operators/trigonometric";
export {
  broadcastTo,
  cat,
  contiguous,
  expand,
  flatten,
  narrow,
  permute,
  reshape,
  select,
  squeeze,
  stack,
  sumTo,
  t,
  transpose,
  unsqueeze,
  view,
} from "./operators/views";

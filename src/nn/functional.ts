/** The operations that PyTorch has in torch.nn.functional. */
export * from "../tensor/functional";
export {
  avgPool2d,
  batchNorm,
  conv2d,
  crossEntropy,
  gelu,
  groupNorm,
  layerNorm,
  linear,
  logSoftmax,
  maxPool2d,
  maxPool2dWithIndices,
  nllLoss,
  relu,
  sigmoid,
  softmax,
  tanh,
} from "../tensor/index";
export { alphaDropout, dropout, featureAlphaDropout, featureDropout } from "./dropout";

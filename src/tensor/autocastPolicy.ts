/**
 * What autocast does with an operator's floating-point inputs, as PyTorch's lists for CUDA have it
 * (aten/src/ATen/autocast_mode.h): casts them to the region's type, or to float32. Others run in the types they get;
 * those that mix types promote, in a region or not. "wide" is what PyTorch has as one kernel, and Ringlet as several
 * operators: it computes float32 from a narrow input, in a region or not, and rounds its result to the input's type.
 */
export type Policy = "lower" | "float32" | "wide";

const lower = [
  "addbmm",
  "addmm",
  "addmv",
  "attentionWithWeights",
  "baddbmm",
  "convolve",
  "linear",
  "matmul",
  "packedSelfAttention",
  "prelu",
  "scaledDotProductAttention",
] as const;

const float32 = [
  // Powers and exponentials, which leave float16's range soonest.
  ...[
    "acos",
    "asin",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
  ],
  "softplus",
  // Sums and products of many elements.
  ...["cumprod", "cumsum", "logSoftmax", "logsumexp", "prod", "softmax", "sum"],
  // Norms and distances.
  ...["cosineSimilarity", "groupNorm", "layerNorm", "norm", "pairwiseDistance", "rmsNorm", "vectorNorm"],
  // Losses.
  ...["binaryCrossEntropyWithLogits", "cosineEmbeddingLoss", "crossEntropy", "gaussianNllLoss", "hingeEmbeddingLoss"],
  ...["huberLoss", "klDiv", "l1Loss", "marginRankingLoss", "mseLoss", "multilabelSoftMarginLoss", "nllLoss"],
  ...["poissonNllLoss", "smoothL1Loss", "softMarginLoss", "tripletMarginLoss"],
  "interpolate",
] as const;

const wide = ["batchNorm", "instanceNorm", "lerp", "mean", "var"] as const;

const policies: ReadonlyMap<string, Policy> = new Map([
  ...lower.map((name) => [name, "lower"] as const),
  ...float32.map((name) => [name, "float32"] as const),
  ...wide.map((name) => [name, "wide"] as const),
]);

/** The policy of an operator, by the name of its row or function; null: it runs in the types it gets. */
export const policyOf = (operator: string): Policy | null => policies.get(operator) ?? null;

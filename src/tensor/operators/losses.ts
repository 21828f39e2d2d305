import { apply } from "../apply";
import { autocasting } from "../autocast";
import { describeShape, OperatorError, sameShape } from "../shape";
import type { Tensor } from "../tensor";
import { logsigmoid } from "./activations";
import type { Reduction } from "./crossEntropy";
import { cosineSimilarityOfSquares, pairwiseDistance, raised } from "./distances";
import { abs, add, clamp, div, eq, exp, le, log, lt, minimum, mul, ne, neg, sub, where } from "./elementwise";
import { elementwiseRow } from "./elementwiseRow";
import { logaddexp, xlogy } from "./exponential";
import { isNan, log1p as log1pShader } from "./mathShader";
import { mean, sum } from "./reduction";
import type { Operator } from "./table";
import { unsqueeze } from "./views";

/*
 * PyTorch's losses on tensors of any shape, made of elementwise operators. Each takes a reduction: the mean (by default)
 * or the sum of all elements, or none.
 */

/** Reduces a loss's elements. */
export function reduceLoss(losses: Tensor, reduction: Reduction = "mean"): Tensor {
  switch (reduction) {
    case "none":
      return losses;
    case "sum":
      return sum(losses);
    case "mean":
      return mean(losses);
  }
}

export interface LossOptions {
  /** Default: "mean". */
  readonly reduction?: Reduction;
}

export interface WeightedLossOptions extends LossOptions {
  /** Factors of the elements, which broadcast. */
  readonly weight?: Tensor | null;
}

const weighted = (losses: Tensor, weight: Tensor | null | undefined) => (weight ? mul(losses, weight) : losses);

/** |input - target|. */
export const l1Loss = autocasting(
  "l1Loss",
  (input: Tensor, target: Tensor, { reduction }: LossOptions = {}): Tensor =>
    reduceLoss(abs(sub(input, target)), reduction),
);

/** (input - target)². */
export const mseLoss = autocasting(
  "mseLoss",
  (input: Tensor, target: Tensor, { reduction }: LossOptions = {}): Tensor => {
    const difference = sub(input, target);
    return reduceLoss(mul(difference, difference), reduction);
  },
);

export interface SmoothL1Options extends LossOptions {
  /** Where the parabola ends. Default: 1. */
  readonly beta?: number;
}

/** With d = |input - target|: d² / (2 beta) below beta, d - beta / 2 from there on. */
export const smoothL1Loss = autocasting(
  "smoothL1Loss",
  (input: Tensor, target: Tensor, { reduction, beta = 1 }: SmoothL1Options = {}): Tensor => {
    if (beta === 0) return l1Loss(input, target, reduction ? { reduction } : {});
    const difference = sub(input, target);
    const distance = abs(difference);
    // Clamped, so that its slope is finite where it isn't taken.
    const near = clamp(difference, -beta, beta);
    const parabola = mul(mul(near, near), 0.5 / beta);
    return reduceLoss(where(lt(distance, beta), parabola, sub(distance, beta / 2)), reduction);
  },
);

export interface HuberOptions extends LossOptions {
  /** Where the parabola ends. Default: 1. */
  readonly delta?: number;
}

/** With d = |input - target|: d² / 2 up to delta, delta (d - delta / 2) from there on. */
export const huberLoss = autocasting(
  "huberLoss",
  (input: Tensor, target: Tensor, { reduction, delta = 1 }: HuberOptions = {}): Tensor => {
    if (!(delta > 0)) throw new OperatorError("huberLoss", `delta is ${delta}; expected a number above 0`);
    const difference = sub(input, target);
    const distance = abs(difference);
    const near = clamp(difference, -delta, delta);
    const parabola = mul(mul(near, near), 0.5);
    return reduceLoss(where(lt(distance, delta), parabola, mul(sub(distance, delta / 2), delta)), reduction);
  },
);

/** Operands: probability, target. Logarithms below -100 count as -100, as in PyTorch. */
const binaryCrossEntropyRow = elementwiseRow({
  name: "binaryCrossEntropy",
  body: `if (is_nan(a)) { return a; }
    return (b - 1.0) * max(log_one_plus(-a), -100.0) - b * max(safe_log(a), -100.0);`,
  helpers: isNan + log1pShader,
  gradient: ({ gradient, inputs: [p, target], needs }) => [
    needs[0] ? mul(gradient, div(sub(p!, target!), clamp(mul(sub(1, p!), p!), 1e-12, null))) : null,
    needs[1] ? mul(gradient, sub(log(sub(1, p!)), log(p!))) : null,
  ],
});

export const losses: readonly Operator[] = [binaryCrossEntropyRow];

/** -(target log(input) + (1 - target) log(1 - input)) of probabilities. */
export function binaryCrossEntropy(
  input: Tensor,
  target: Tensor,
  { weight, reduction }: WeightedLossOptions = {},
): Tensor {
  if (!sameShape(input.shape, target.shape))
    throw new OperatorError(
      "binaryCrossEntropy",
      `the target has shape ${describeShape(target.shape)}; expected the input's, ${describeShape(input.shape)}`,
    );
  return reduceLoss(weighted(apply(binaryCrossEntropyRow, [input, target], {}), weight), reduction);
}

export interface BinaryCrossEntropyWithLogitsOptions extends WeightedLossOptions {
  /** Factors of the positive targets' part, which broadcast. */
  readonly posWeight?: Tensor | null;
}

/** Binary cross-entropy of sigmoid(input), without overflow. */
export const binaryCrossEntropyWithLogits = autocasting(
  "binaryCrossEntropyWithLogits",
  (
    input: Tensor,
    target: Tensor,
    { weight, posWeight, reduction }: BinaryCrossEntropyWithLogitsOptions = {},
  ): Tensor => {
    if (!sameShape(input.shape, target.shape))
      throw new OperatorError(
        "binaryCrossEntropyWithLogits",
        `the target has shape ${describeShape(target.shape)}; expected the input's, ${describeShape(input.shape)}`,
      );
    const ofPositive = logaddexp(neg(input), 0);
    const factor = posWeight ? add(mul(sub(posWeight, 1), target), 1) : null;
    const result = add(mul(sub(1, target), input), weighted(ofPositive, factor));
    return reduceLoss(weighted(result, weight), reduction);
  },
);

export interface KlDivOptions {
  /** "batchmean" divides the sum by the batch's size, which is the divergence's definition. Default: "mean". */
  readonly reduction?: Reduction | "batchmean";
  /** Whether the target holds logarithms too. Default: false. */
  readonly logTarget?: boolean;
}

/** The Kullback-Leibler divergence's terms, target (log(target) - input), of log-probabilities. */
export const klDiv = autocasting(
  "klDiv",
  (input: Tensor, target: Tensor, { reduction, logTarget = false }: KlDivOptions = {}): Tensor => {
    const terms = logTarget ? mul(exp(target), sub(target, input)) : sub(xlogy(target, target), mul(target, input));
    return reduction === "batchmean" ? div(sum(terms), input.shape[0] ?? 1) : reduceLoss(terms, reduction);
  },
);

export interface PoissonOptions extends LossOptions {
  /** Whether the input is the rate's logarithm. Default: true. */
  readonly logInput?: boolean;
  /** Whether Stirling's approximation of log(target!) is added. Default: false. */
  readonly full?: boolean;
  /** Added to the rate where it isn't a logarithm. Default: 1e-8. */
  readonly eps?: number;
}

/** The negative log-likelihood of counts that are Poisson-distributed with the input's rates. */
export const poissonNllLoss = autocasting(
  "poissonNllLoss",
  (
    input: Tensor,
    target: Tensor,
    { logInput = true, full = false, eps = 1e-8, reduction }: PoissonOptions = {},
  ): Tensor => {
    const likelihood = logInput ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, eps))));
    if (!full) return reduceLoss(likelihood, reduction);
    const stirling = add(sub(mul(target, log(target)), target), mul(log(mul(target, 2 * Math.PI)), 0.5));
    return reduceLoss(add(likelihood, where(le(target, 1), 0, stirling)), reduction);
  },
);

export interface GaussianOptions extends LossOptions {
  /** Whether log(2 pi) / 2 is added. Default: false. */
  readonly full?: boolean;
  /** Variances below count as this. Default: 1e-6. */
  readonly eps?: number;
}

/**
 * The negative log-likelihood of targets that are normally distributed around the input.
 * @param variance the input's shape, or that without the last dimension, or with 1 in its place.
 */
export const gaussianNllLoss = autocasting(
  "gaussianNllLoss",
  (
    input: Tensor,
    target: Tensor,
    variance: Tensor,
    { full = false, eps = 1e-6, reduction }: GaussianOptions = {},
  ): Tensor => {
    const lead = input.shape.slice(0, -1);
    const isShared = !sameShape(variance.shape, input.shape) && sameShape(variance.shape, lead);
    if (!sameShape(variance.shape, input.shape) && !isShared && !sameShape(variance.shape, [...lead, 1]))
      throw new OperatorError(
        "gaussianNllLoss",
        `the variance has shape ${describeShape(variance.shape)}; expected ${describeShape(input.shape)}, or that with a last size of 1 or without it`,
      );
    const spread = raised(isShared ? unsqueeze(variance, -1) : variance, eps);
    const difference = sub(input, target);
    const likelihood = mul(add(log(spread), div(mul(difference, difference), spread)), 0.5);
    return reduceLoss(full ? add(likelihood, 0.5 * Math.log(2 * Math.PI)) : likelihood, reduction);
  },
);

export interface MarginOptions extends LossOptions {
  readonly margin?: number;
}

/** The input where the target is 1; max(0, margin - input) where it is -1. The margin is 1 by default. */
export const hingeEmbeddingLoss = autocasting(
  "hingeEmbeddingLoss",
  (input: Tensor, target: Tensor, { margin = 1, reduction }: MarginOptions = {}): Tensor => {
    const ofOthers = where(ne(target, 1), clamp(sub(margin, input), 0, null), 0);
    return reduceLoss(add(ofOthers, where(ne(target, -1), input, 0)), reduction);
  },
);

/** max(0, -target (input1 - input2) + margin); the margin is 0 by default. */
export const marginRankingLoss = autocasting(
  "marginRankingLoss",
  (input1: Tensor, input2: Tensor, target: Tensor, { margin = 0, reduction }: MarginOptions = {}): Tensor => {
    return reduceLoss(clamp(add(mul(neg(target), sub(input1, input2)), margin), 0, null), reduction);
  },
);

/** log(1 + exp(-target input)) for targets of 1 and -1. */
export const softMarginLoss = autocasting(
  "softMarginLoss",
  (input: Tensor, target: Tensor, { reduction }: LossOptions = {}): Tensor =>
    reduceLoss(logaddexp(neg(mul(target, input)), 0), reduction),
);

/** The mean over the classes (the last dimension) of the binary cross-entropy of sigmoid(input). */
export const multilabelSoftMarginLoss = autocasting(
  "multilabelSoftMarginLoss",
  (input: Tensor, target: Tensor, { weight, reduction }: WeightedLossOptions = {}): Tensor => {
    const terms = neg(add(mul(target, logsigmoid(input)), mul(sub(1, target), logsigmoid(neg(input)))));
    return reduceLoss(mean(weighted(terms, weight), -1), reduction);
  },
);

/** 1 - cos(input1, input2) where the target is 1; max(0, cos - margin) where it is -1. The margin is 0 by default. */
export const cosineEmbeddingLoss = autocasting(
  "cosineEmbeddingLoss",
  (input1: Tensor, input2: Tensor, target: Tensor, { margin = 0, reduction }: MarginOptions = {}): Tensor => {
    if (input1.ndim !== target.ndim + 1)
      throw new OperatorError(
        "cosineEmbeddingLoss",
        `input1 has shape ${describeShape(input1.shape)} and the target ${describeShape(target.shape)}; expected [N, D] and [N], or [D] and []`,
      );
    const cosine = cosineSimilarityOfSquares(input1, input2, target.ndim);
    const ofEqual = where(eq(target, 1), sub(1, cosine), 0);
    const ofOthers = where(eq(target, -1), clamp(sub(cosine, margin), 0, null), 0);
    return reduceLoss(add(ofEqual, ofOthers), reduction);
  },
);

export interface TripletOptions extends MarginOptions {
  /** The order of the distances' norm. Default: 2. */
  readonly p?: number;
  /** Added to the differences. Default: 1e-6. */
  readonly eps?: number;
  /** Whether the negative is compared with the nearer of anchor and positive. Default: false. */
  readonly swap?: boolean;
}

/** max(0, |anchor - positive| - |anchor - negative| + margin); the margin is 1 by default. */
export const tripletMarginLoss = autocasting(
  "tripletMarginLoss",
  (
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    { margin = 1, p = 2, eps = 1e-6, swap = false, reduction }: TripletOptions = {},
  ): Tensor => {
    const near = pairwiseDistance(anchor, positive, p, eps);
    const far = pairwiseDistance(anchor, negative, p, eps);
    const other = swap ? minimum(far, pairwiseDistance(positive, negative, p, eps)) : far;
    return reduceLoss(clamp(add(sub(near, other), margin), 0, null), reduction);
  },
);

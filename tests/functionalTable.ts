import * as torch from "../src/tensor/index";
import { type OperatorRow, row, unary } from "./operatorRow";
import { type ReferenceCall, toTensor } from "./referenceCall";

const windowOptions = (a: ReferenceCall) => ({
  stride: a.numbers("stride"),
  padding: a.numbers("padding") ?? 0,
  ceilMode: a.boolean("ceil_mode", false),
});

const convolutionOptions = (a: ReferenceCall) => ({
  stride: a.numbers("stride") ?? 1,
  padding: a.textOrNumbers("padding", "same", "valid") ?? 0,
  dilation: a.numbers("dilation") ?? 1,
  groups: a.number("groups", 1),
});

const transposedOptions = (a: ReferenceCall) => ({
  stride: a.numbers("stride") ?? 1,
  padding: a.numbers("padding") ?? 0,
  outputPadding: a.numbers("output_padding") ?? 0,
  groups: a.number("groups", 1),
  dilation: a.numbers("dilation") ?? 1,
});

const reductionOf = (a: ReferenceCall) => ({ reduction: a.oneOf("reduction", "mean", "sum", "none") });

/** A loss of an input and a target, with further options. */
const loss = (
  parameters: string,
  call: (
    input: torch.Tensor,
    target: torch.Tensor,
    shared: { readonly reduction: torch.Reduction },
    a: ReferenceCall,
  ) => torch.Tensor,
): OperatorRow =>
  row(`input target ${parameters} reduction`, (a) => call(a.tensor("input"), a.tensor("target"), reductionOf(a), a));

const outputs = (a: ReferenceCall, { output, indices }: torch.PoolWithIndices) =>
  a.boolean("return_indices", false) ? [output, indices] : output;

/** Dropout with PyTorch's own draws: where one of its weights is 0, it was dropped or masked. */
const dropoutOf = (a: ReferenceCall) => {
  const p = a.number("dropout_p", 0);
  if (p === 0) return null;
  const factors = torch.where(torch.ne(toTensor(a.expectedOutput(1)), 0), 1 / (1 - p), 0);
  return (weights: torch.Tensor) => torch.mul(weights, factors);
};

/** Rows for what PyTorch has in `torch.nn.functional`. */
export const functionalTable: Readonly<Record<string, OperatorRow>> = {
  // Activations
  "nn.functional.celu": row("input alpha", (a) => torch.celu(a.tensor("input"), a.number("alpha", 1))),
  "nn.functional.elu": row("input alpha", (a) => torch.elu(a.tensor("input"), a.number("alpha", 1))),
  "nn.functional.gelu": row("input approximate", (a) =>
    torch.gelu(a.tensor("input"), a.oneOf("approximate", "none", "tanh")),
  ),
  "nn.functional.glu": row("input dim", (a) => torch.glu(a.tensor("input"), a.number("dim", -1))),
  "nn.functional.hardshrink": row("input lambd", (a) => torch.hardshrink(a.tensor("input"), a.number("lambd", 0.5))),
  "nn.functional.hardsigmoid": unary(torch.hardsigmoid),
  "nn.functional.hardswish": unary(torch.hardswish),
  "nn.functional.hardtanh": row("input min_val max_val", (a) =>
    torch.hardtanh(a.tensor("input"), a.number("min_val", -1), a.number("max_val", 1)),
  ),
  "nn.functional.leaky_relu": row("input negative_slope", (a) =>
    torch.leakyRelu(a.tensor("input"), a.number("negative_slope", 0.01)),
  ),
  "nn.functional.logsigmoid": unary(torch.logsigmoid),
  "nn.functional.mish": unary(torch.mish),
  "nn.functional.prelu": row("input weight", (a) => torch.prelu(a.tensor("input"), a.tensor("weight"))),
  "nn.functional.relu": unary(torch.relu),
  "nn.functional.relu6": unary(torch.relu6),
  "nn.functional.selu": unary(torch.selu),
  "nn.functional.silu": unary(torch.silu),
  "nn.functional.softmin": row("input dim", (a) => torch.softmin(a.tensor("input"), a.number("dim"))),
  "nn.functional.softplus": row("input beta threshold", (a) =>
    torch.softplus(a.tensor("input"), a.number("beta", 1), a.number("threshold", 20)),
  ),
  "nn.functional.softshrink": row("input lambd", (a) => torch.softshrink(a.tensor("input"), a.number("lambd", 0.5))),
  "nn.functional.softsign": unary(torch.softsign),
  "nn.functional.tanhshrink": unary(torch.tanhshrink),
  "nn.functional.threshold": row("input threshold value", (a) =>
    torch.threshold(a.tensor("input"), a.number("threshold"), a.number("value")),
  ),

  // Layers with weights
  "nn.functional.bilinear": row("input1 input2 weight bias", (a) =>
    torch.bilinear(a.tensor("input1"), a.tensor("input2"), a.tensor("weight"), a.optionalTensor("bias")),
  ),
  "nn.functional.embedding": row("weight input padding_idx scale_grad_by_freq", (a) =>
    torch.embedding(a.tensor("input"), a.tensor("weight"), {
      paddingIdx: a.optionalNumber("padding_idx"),
      scaleGradByFreq: a.boolean("scale_grad_by_freq", false),
    }),
  ),
  "nn.functional.embedding_bag": row(
    "weight input offsets scale_grad_by_freq mode per_sample_weights include_last_offset padding_idx",
    (a) =>
      torch.embeddingBag(a.tensor("input"), a.tensor("weight"), {
        offsets: a.optionalTensor("offsets"),
        mode: a.oneOf("mode", "mean", "sum", "max"),
        perSampleWeights: a.optionalTensor("per_sample_weights"),
        includeLastOffset: a.boolean("include_last_offset", false),
        paddingIdx: a.optionalNumber("padding_idx"),
        scaleGradByFreq: a.boolean("scale_grad_by_freq", false),
      }),
  ),
  "nn.functional.linear": row("input weight bias", (a) =>
    torch.linear(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias")),
  ),
  "nn.functional._scaled_dot_product_attention": {
    ...row("query key value attn_mask dropout_p need_attn_weights is_causal", (a) => {
      // The weights are returned in any case.
      a.boolean("need_attn_weights", true);
      const { output, weights } = torch.attentionWithWeights(a.tensor("query"), a.tensor("key"), a.tensor("value"), {
        attnMask: a.optionalTensor("attn_mask"),
        isCausal: a.boolean("is_causal", false),
        dropout: dropoutOf(a),
      });
      return [output, weights];
    }),
    tolerance: {
      relative: 1e-4,
      absolute: 1e-4,
      reason:
        "The cases' scores reach 92, where a weight near 1 has its rounding error of 6e-8 multiplied by cotangents, keys " +
        "and values of up to 9: PyTorch's own gradients are up to 2.8e-5 off from those in float64.",
    },
  },

  // Losses
  "nn.functional.binary_cross_entropy": loss("weight", (input, target, shared, a) =>
    torch.binaryCrossEntropy(input, target, { ...shared, weight: a.optionalTensor("weight") }),
  ),
  "nn.functional.binary_cross_entropy_with_logits": row("input target weight reduction pos_weight", (a) =>
    torch.binaryCrossEntropyWithLogits(a.tensor("input"), a.tensor("target"), {
      ...reductionOf(a),
      weight: a.optionalTensor("weight"),
      posWeight: a.optionalTensor("pos_weight"),
    }),
  ),
  "nn.functional.cosine_embedding_loss": row("input1 input2 target margin reduction", (a) =>
    torch.cosineEmbeddingLoss(a.tensor("input1"), a.tensor("input2"), a.tensor("target"), {
      ...reductionOf(a),
      margin: a.number("margin", 0),
    }),
  ),
  "nn.functional.cross_entropy": row("input target weight ignore_index reduction label_smoothing", (a) =>
    torch.crossEntropy(a.tensor("input"), a.tensor("target"), {
      weight: a.optionalTensor("weight"),
      ignoreIndex: a.number("ignore_index", -100),
      ...reductionOf(a),
      labelSmoothing: a.number("label_smoothing", 0),
    }),
  ),
  "nn.functional.gaussian_nll_loss": row("input target var full eps reduction", (a) =>
    torch.gaussianNllLoss(a.tensor("input"), a.tensor("target"), a.tensor("var"), {
      ...reductionOf(a),
      full: a.boolean("full", false),
      eps: a.number("eps", 1e-6),
    }),
  ),
  "nn.functional.hinge_embedding_loss": loss("margin", (input, target, shared, a) =>
    torch.hingeEmbeddingLoss(input, target, { ...shared, margin: a.number("margin", 1) }),
  ),
  "nn.functional.huber_loss": row("input target reduction delta", (a) =>
    torch.huberLoss(a.tensor("input"), a.tensor("target"), { ...reductionOf(a), delta: a.number("delta", 1) }),
  ),
  "nn.functional.kl_div": row("input target reduction log_target", (a) =>
    torch.klDiv(a.tensor("input"), a.tensor("target"), {
      reduction: a.oneOf("reduction", "mean", "sum", "none", "batchmean"),
      logTarget: a.boolean("log_target", false),
    }),
  ),
  "nn.functional.l1_loss": loss("", torch.l1Loss),
  "nn.functional.margin_ranking_loss": row("input1 input2 target margin reduction", (a) =>
    torch.marginRankingLoss(a.tensor("input1"), a.tensor("input2"), a.tensor("target"), {
      ...reductionOf(a),
      margin: a.number("margin", 0),
    }),
  ),
  "nn.functional.mse_loss": loss("", torch.mseLoss),
  "nn.functional.multilabel_soft_margin_loss": loss("weight", (input, target, shared, a) =>
    torch.multilabelSoftMarginLoss(input, target, { ...shared, weight: a.optionalTensor("weight") }),
  ),
  "nn.functional.nll_loss": row("input target weight ignore_index reduction", (a) =>
    torch.nllLoss(a.tensor("input"), a.tensor("target"), {
      weight: a.optionalTensor("weight"),
      ignoreIndex: a.number("ignore_index", -100),
      ...reductionOf(a),
    }),
  ),
  "nn.functional.poisson_nll_loss": loss("log_input full eps", (input, target, shared, a) =>
    torch.poissonNllLoss(input, target, {
      ...shared,
      logInput: a.boolean("log_input", true),
      full: a.boolean("full", false),
      eps: a.number("eps", 1e-8),
    }),
  ),
  "nn.functional.smooth_l1_loss": row("input target reduction beta", (a) =>
    torch.smoothL1Loss(a.tensor("input"), a.tensor("target"), { ...reductionOf(a), beta: a.number("beta", 1) }),
  ),
  "nn.functional.soft_margin_loss": loss("", torch.softMarginLoss),
  "nn.functional.triplet_margin_loss": row("anchor positive negative margin p eps swap reduction", (a) =>
    torch.tripletMarginLoss(a.tensor("anchor"), a.tensor("positive"), a.tensor("negative"), {
      ...reductionOf(a),
      margin: a.number("margin", 1),
      p: a.number("p", 2),
      eps: a.number("eps", 1e-6),
      swap: a.boolean("swap", false),
    }),
  ),

  // Distances
  "nn.functional.cosine_similarity": row("x1 x2 dim eps", (a) =>
    torch.cosineSimilarity(a.tensor("x1"), a.tensor("x2"), a.number("dim", 1), a.number("eps", 1e-8)),
  ),
  "nn.functional.normalize": row("input p dim eps", (a) =>
    torch.normalize(a.tensor("input"), a.number("p", 2), a.numbers("dim") ?? 1, a.number("eps", 1e-12)),
  ),
  "nn.functional.pairwise_distance": row("x1 x2 p eps keepdim", (a) =>
    torch.pairwiseDistance(
      a.tensor("x1"),
      a.tensor("x2"),
      a.number("p", 2),
      a.number("eps", 1e-6),
      a.boolean("keepdim", false),
    ),
  ),

  // Convolution
  "nn.functional.conv1d": row("input weight bias stride padding dilation groups", (a) =>
    torch.conv1d(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias"), convolutionOptions(a)),
  ),
  "nn.functional.conv2d": row("input weight bias stride padding dilation groups", (a) =>
    torch.conv2d(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias"), convolutionOptions(a)),
  ),
  "nn.functional.conv_transpose1d": row("input weight bias stride padding output_padding groups dilation", (a) =>
    torch.convTranspose1d(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias"), transposedOptions(a)),
  ),
  "nn.functional.conv_transpose2d": row("input weight bias stride padding output_padding groups dilation", (a) =>
    torch.convTranspose2d(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias"), transposedOptions(a)),
  ),

  // Pooling
  "nn.functional.adaptive_avg_pool1d": row("input output_size", (a) =>
    torch.adaptiveAvgPool1d(a.tensor("input"), a.sizes("output_size")),
  ),
  "nn.functional.adaptive_avg_pool2d": row("input output_size", (a) =>
    torch.adaptiveAvgPool2d(a.tensor("input"), a.sizes("output_size")),
  ),
  "nn.functional.adaptive_max_pool2d": row("input output_size return_indices", (a) =>
    outputs(a, torch.adaptiveMaxPool2dWithIndices(a.tensor("input"), a.sizes("output_size"))),
  ),
  "nn.functional.avg_pool1d": row("input kernel_size stride padding ceil_mode count_include_pad", (a) =>
    torch.avgPool1d(a.tensor("input"), a.numbers("kernel_size") ?? [], {
      ...windowOptions(a),
      countIncludePad: a.boolean("count_include_pad", true),
    }),
  ),
  "nn.functional.avg_pool2d": row(
    "input kernel_size stride padding ceil_mode count_include_pad divisor_override",
    (a) =>
      torch.avgPool2d(a.tensor("input"), a.numbers("kernel_size") ?? [], {
        ...windowOptions(a),
        countIncludePad: a.boolean("count_include_pad", true),
        divisorOverride: a.optionalNumber("divisor_override"),
      }),
  ),
  "nn.functional.max_pool1d": row("input kernel_size stride padding dilation ceil_mode return_indices", (a) =>
    outputs(
      a,
      torch.maxPool1dWithIndices(a.tensor("input"), a.numbers("kernel_size") ?? [], {
        ...windowOptions(a),
        dilation: a.numbers("dilation") ?? 1,
      }),
    ),
  ),
  "nn.functional.max_pool2d": row("input kernel_size stride padding dilation ceil_mode return_indices", (a) =>
    outputs(
      a,
      torch.maxPool2dWithIndices(a.tensor("input"), a.numbers("kernel_size") ?? [], {
        ...windowOptions(a),
        dilation: a.numbers("dilation") ?? 1,
      }),
    ),
  ),

  // Places
  "nn.functional.interpolate": row("input size scale_factor mode align_corners recompute_scale_factor antialias", (a) =>
    torch.interpolate(a.tensor("input"), {
      size: a.numbers("size"),
      scaleFactor: a.numbers("scale_factor"),
      mode: a.oneOf("mode", "nearest", "linear", "bilinear", "bicubic", "trilinear", "area"),
      alignCorners: a.boolean("align_corners", false),
      recomputeScaleFactor: a.boolean("recompute_scale_factor", false),
    }),
  ),
  "nn.functional.pad": row("input pad mode value", (a) =>
    torch.pad(
      a.tensor("input"),
      a.list("pad"),
      a.oneOf("mode", "constant", "reflect", "replicate", "circular"),
      a.number("value", 0),
    ),
  ),
  "nn.functional.pixel_shuffle": row("input upscale_factor", (a) =>
    torch.pixelShuffle(a.tensor("input"), a.number("upscale_factor")),
  ),
  "nn.functional.pixel_unshuffle": row("input downscale_factor", (a) =>
    torch.pixelUnshuffle(a.tensor("input"), a.number("downscale_factor")),
  ),
  "nn.functional.unfold": row("input kernel_size dilation padding stride", (a) =>
    torch.unfold(a.tensor("input"), a.numbers("kernel_size") ?? [], {
      dilation: a.numbers("dilation") ?? 1,
      padding: a.numbers("padding") ?? 0,
      stride: a.numbers("stride") ?? 1,
    }),
  ),

  // Normalization
  "nn.functional.batch_norm": row("input running_mean running_var weight bias training momentum eps", (a) =>
    torch.batchNorm(a.tensor("input"), a.optionalTensor("running_mean"), a.optionalTensor("running_var"), {
      weight: a.optionalTensor("weight"),
      bias: a.optionalTensor("bias"),
      training: a.boolean("training", false),
      momentum: a.number("momentum", 0.1),
      eps: a.number("eps", 1e-5),
    }),
  ),
  "nn.functional.group_norm": row("input num_groups weight bias eps", (a) =>
    torch.groupNorm(a.tensor("input"), a.number("num_groups"), {
      weight: a.optionalTensor("weight"),
      bias: a.optionalTensor("bias"),
      eps: a.number("eps", 1e-5),
    }),
  ),
  "nn.functional.instance_norm": row("input running_mean running_var weight bias use_input_stats momentum eps", (a) =>
    torch.instanceNorm(a.tensor("input"), a.optionalTensor("running_mean"), a.optionalTensor("running_var"), {
      weight: a.optionalTensor("weight"),
      bias: a.optionalTensor("bias"),
      useInputStats: a.boolean("use_input_stats", true),
      momentum: a.number("momentum", 0.1),
      eps: a.number("eps", 1e-5),
    }),
  ),
  "nn.functional.layer_norm": {
    ...row("input normalized_shape weight bias eps", (a) =>
      torch.layerNorm(a.tensor("input"), a.list("normalized_shape"), {
        weight: a.optionalTensor("weight"),
        bias: a.optionalTensor("bias"),
        eps: a.number("eps", 1e-5),
      }),
    ),
    tolerance: {
      relative: 1e-4,
      absolute: 1e-3,
      reason:
        "Over a single value the weight's gradient is exactly 0. PyTorch computes it as x / sqrt(eps) - x / sqrt(eps), " +
        "of which rounding leaves up to 1.2e-4 of each row, where x is up to 9.",
      holdsFor: ({ args: [, shape] }) => Array.isArray(shape) && shape.every((size) => size === 1),
    },
  },
  "nn.functional.local_response_norm": row("input size alpha beta k", (a) =>
    torch.localResponseNorm(a.tensor("input"), a.number("size"), {
      alpha: a.number("alpha", 1e-4),
      beta: a.number("beta", 0.75),
      k: a.number("k", 1),
    }),
  ),
};

import * as torch from "../src/tensor/index";
import { type OperatorRow, row, unary } from "./operatorRow";
import type { ReferenceCall } from "./referenceCall";
import { tensorOperators } from "./tensorOperators";

const windowOptions = (a: ReferenceCall) => ({
  stride: a.numbers("stride"),
  padding: a.numbers("padding") ?? 0,
  ceilMode: a.boolean("ceil_mode", false),
});

/** Rows by PyTorch's name, which is also that of the reference's file. */
export const operatorTable: Readonly<Record<string, OperatorRow>> = {
  ...tensorOperators,

  // Elementwise
  "nn.functional.gelu": row("input approximate", (a) =>
    torch.gelu(a.tensor("input"), a.oneOf("approximate", "none", "tanh")),
  ),
  "nn.functional.relu": unary(torch.relu),
  // Matrices
  "nn.functional.linear": row("input weight bias", (a) =>
    torch.linear(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias")),
  ),

  // Probabilities and losses
  "nn.functional.cross_entropy": row("input target weight ignore_index reduction label_smoothing", (a) =>
    torch.crossEntropy(a.tensor("input"), a.tensor("target"), {
      weight: a.optionalTensor("weight"),
      ignoreIndex: a.number("ignore_index", -100),
      reduction: a.oneOf("reduction", "mean", "sum", "none"),
      labelSmoothing: a.number("label_smoothing", 0),
    }),
  ),
  "nn.functional.nll_loss": row("input target weight ignore_index reduction", (a) =>
    torch.nllLoss(a.tensor("input"), a.tensor("target"), {
      weight: a.optionalTensor("weight"),
      ignoreIndex: a.number("ignore_index", -100),
      reduction: a.oneOf("reduction", "mean", "sum", "none"),
    }),
  ),
  // Convolution and pooling
  "nn.functional.avg_pool2d": row(
    "input kernel_size stride padding ceil_mode count_include_pad divisor_override",
    (a) =>
      torch.avgPool2d(a.tensor("input"), a.numbers("kernel_size") ?? [], {
        ...windowOptions(a),
        countIncludePad: a.boolean("count_include_pad", true),
        divisorOverride: a.optionalNumber("divisor_override"),
      }),
  ),
  "nn.functional.conv2d": row("input weight bias stride padding dilation groups", (a) =>
    torch.conv2d(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias"), {
      stride: a.numbers("stride") ?? 1,
      padding: a.textOrNumbers("padding", "same", "valid") ?? 0,
      dilation: a.numbers("dilation") ?? 1,
      groups: a.number("groups", 1),
    }),
  ),
  "nn.functional.max_pool2d": row("input kernel_size stride padding dilation ceil_mode return_indices", (a) => {
    const { output, indices } = torch.maxPool2dWithIndices(a.tensor("input"), a.numbers("kernel_size") ?? [], {
      ...windowOptions(a),
      dilation: a.numbers("dilation") ?? 1,
    });
    return a.boolean("return_indices", false) ? [output, indices] : output;
  }),

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
      absolute: 1e-4,
      reason:
        "Over a single value the weight's gradient is exactly 0. PyTorch computes it as x / sqrt(eps) - x / sqrt(eps), " +
        "of which 8e-5 remains.",
    },
  },
};

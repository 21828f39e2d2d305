import type { Tensor } from "../src/tensor/index";
import * as torch from "../src/tensor/index";
import type { ReferenceCall } from "./referenceCall";
import type { Tolerance } from "./referenceCase";

/** How one of PyTorch's operators is called in Ringlet. */
export interface OperatorRow {
  /** PyTorch's parameters, in order. */
  readonly parameters: readonly string[];
  /** The outputs, in PyTorch's order. */
  readonly call: (call: ReferenceCall) => Tensor | readonly Tensor[];
  /** Bounds other than the reference's, with their reason. */
  readonly tolerance?: Tolerance & { readonly reason: string };
}

const row = (parameters: string, call: OperatorRow["call"]): OperatorRow => ({
  parameters: parameters.split(" ").filter((name) => name !== ""),
  call,
});

const unary = (of: (input: Tensor) => Tensor): OperatorRow => row("input", (a) => of(a.tensor("input")));
const binary = (of: (input: torch.Operand, other: torch.Operand) => Tensor): OperatorRow =>
  row("input other", (a) => of(a.operand("input"), a.operand("other")));
const logical = (of: (input: Tensor, other: Tensor) => Tensor): OperatorRow =>
  row("input other", (a) => of(a.tensor("input"), a.tensor("other")));
const reduction = (
  of: (input: Tensor, dim: number | readonly number[] | null, keepdim: boolean) => Tensor,
): OperatorRow => row("input dim keepdim", (a) => of(a.tensor("input"), a.numbers("dim"), a.boolean("keepdim", false)));
const indexReduction = (of: (input: Tensor, dim: number | null, keepdim: boolean) => Tensor): OperatorRow =>
  row("input dim keepdim", (a) => of(a.tensor("input"), a.optionalNumber("dim"), a.boolean("keepdim", false)));

/** max and min: of all values, along a dimension with indices, or of two tensors. */
const extreme = (
  all: (input: Tensor) => Tensor,
  along: (input: Tensor, dim: number, keepdim: boolean) => { readonly values: Tensor; readonly indices: Tensor },
  ofTwo: (input: torch.Operand, other: torch.Operand) => Tensor,
): OperatorRow =>
  row("input dim keepdim", (a) => {
    const input = a.tensor("input");
    if (!a.has("dim")) return all(input);
    const dim = a.operand("dim");
    if (typeof dim !== "number") return ofTwo(input, dim);
    const { values, indices } = along(input, dim, a.boolean("keepdim", false));
    return [values, indices];
  });

const windowOptions = (a: ReferenceCall) => ({
  stride: a.numbers("stride"),
  padding: a.numbers("padding") ?? 0,
  ceilMode: a.boolean("ceil_mode", false),
});

/** Rows by PyTorch's name, which is also that of the reference's file. */
export const operatorTable: Readonly<Record<string, OperatorRow>> = {
  // Elementwise
  abs: unary(torch.abs),
  add: row("input other alpha", (a) => torch.add(a.operand("input"), a.operand("other"), a.number("alpha", 1))),
  clamp: row("input min max", (a) =>
    torch.clamp(a.tensor("input"), a.optionalOperand("min"), a.optionalOperand("max")),
  ),
  clamp_max: row("input max", (a) => torch.clamp(a.tensor("input"), null, a.operand("max"))),
  clamp_min: row("input min", (a) => torch.clamp(a.tensor("input"), a.operand("min"), null)),
  cos: unary(torch.cos),
  div: row("input other rounding_mode", (a) => {
    const [input, other] = [a.operand("input"), a.operand("other")];
    return a.has("rounding_mode")
      ? torch.div(input, other, a.oneOf("rounding_mode", "trunc", "floor"))
      : torch.div(input, other);
  }),
  erf: unary(torch.erf),
  exp: unary(torch.exp),
  floor: unary(torch.floor),
  log: unary(torch.log),
  maximum: binary(torch.maximum),
  minimum: binary(torch.minimum),
  mul: binary(torch.mul),
  neg: unary(torch.neg),
  "nn.functional.gelu": row("input approximate", (a) =>
    torch.gelu(a.tensor("input"), a.oneOf("approximate", "none", "tanh")),
  ),
  "nn.functional.relu": unary(torch.relu),
  pow: row("input exponent", (a) => torch.pow(a.operand("input"), a.operand("exponent"))),
  reciprocal: unary(torch.reciprocal),
  rsqrt: unary(torch.rsqrt),
  sigmoid: unary(torch.sigmoid),
  sign: unary(torch.sign),
  sin: unary(torch.sin),
  sqrt: unary(torch.sqrt),
  square: unary((input) => torch.pow(input, 2)),
  sub: row("input other alpha", (a) => torch.sub(a.operand("input"), a.operand("other"), a.number("alpha", 1))),
  tanh: unary(torch.tanh),
  trunc: unary(torch.trunc),
  where: row("input condition other", (a) =>
    torch.where(a.tensor("condition"), a.operand("input"), a.operand("other")),
  ),

  // Comparison
  eq: binary(torch.eq),
  ge: binary(torch.ge),
  gt: binary(torch.gt),
  isnan: unary(torch.isnan),
  le: binary(torch.le),
  logical_and: logical(torch.logicalAnd),
  logical_not: unary(torch.logicalNot),
  logical_or: logical(torch.logicalOr),
  lt: binary(torch.lt),
  ne: binary(torch.ne),

  // Reductions
  amax: reduction(torch.amax),
  amin: reduction(torch.amin),
  argmax: indexReduction(torch.argmax),
  argmin: indexReduction(torch.argmin),
  logsumexp: reduction(torch.logsumexp),
  max: extreme(torch.amax, torch.maxOver, torch.maximum),
  mean: reduction(torch.mean),
  min: extreme(torch.amin, torch.minOver, torch.minimum),
  sum: reduction(torch.sum),
  var: row("input dim unbiased keepdim", (a) => {
    // PyTorch also takes unbiased as the second argument.
    const unbiased = a.isBoolean("dim") ? a.boolean("dim", true) : a.boolean("unbiased", true);
    const dim = a.isBoolean("dim") ? null : a.numbers("dim");
    return torch.var_(a.tensor("input"), dim, { correction: unbiased ? 1 : 0, keepdim: a.boolean("keepdim", false) });
  }),

  // Matrices
  bmm: row("input mat2", (a) => torch.bmm(a.tensor("input"), a.tensor("mat2"))),
  dot: row("input other", (a) => torch.dot(a.tensor("input"), a.tensor("other"))),
  matmul: row("input other", (a) => torch.matmul(a.tensor("input"), a.tensor("other"))),
  mm: row("input mat2", (a) => torch.mm(a.tensor("input"), a.tensor("mat2"))),
  mv: row("input vec", (a) => torch.mv(a.tensor("input"), a.tensor("vec"))),
  "nn.functional.linear": row("input weight bias", (a) =>
    torch.linear(a.tensor("input"), a.tensor("weight"), a.optionalTensor("bias")),
  ),

  // Views
  broadcast_to: row("input *size", (a) => torch.broadcastTo(a.tensor("input"), a.list("*size"))),
  cat: row("tensors dim", (a) => torch.cat(a.tensorList("tensors"), a.number("dim", 0))),
  expand: row("input *size", (a) => torch.expand(a.tensor("input"), a.list("*size"))),
  flatten: row("input start_dim end_dim", (a) =>
    torch.flatten(a.tensor("input"), a.number("start_dim", 0), a.number("end_dim", -1)),
  ),
  narrow: row("input dim start length", (a) =>
    torch.narrow(a.tensor("input"), a.number("dim"), a.number("start"), a.number("length")),
  ),
  permute: row("input *dims", (a) => torch.permute(a.tensor("input"), a.list("*dims"))),
  reshape: row("input *shape", (a) => torch.reshape(a.tensor("input"), a.list("*shape"))),
  select: row("input dim index", (a) => torch.select(a.tensor("input"), a.number("dim"), a.number("index"))),
  squeeze: row("input dim", (a) =>
    a.has("dim") ? torch.squeeze(a.tensor("input"), a.number("dim")) : torch.squeeze(a.tensor("input")),
  ),
  stack: row("tensors dim", (a) => torch.stack(a.tensorList("tensors"), a.number("dim", 0))),
  t: unary(torch.t),
  transpose: row("input dim0 dim1", (a) => torch.transpose(a.tensor("input"), a.number("dim0"), a.number("dim1"))),
  unsqueeze: row("input dim", (a) => torch.unsqueeze(a.tensor("input"), a.number("dim"))),
  view: row("input *shape", (a) => torch.view(a.tensor("input"), a.list("*shape"))),

  // Probabilities and losses
  log_softmax: row("input dim", (a) => torch.logSoftmax(a.tensor("input"), a.number("dim"))),
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
  softmax: row("input dim", (a) => torch.softmax(a.tensor("input"), a.number("dim"))),

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

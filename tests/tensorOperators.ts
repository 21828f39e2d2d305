import * as torch from "../src/tensor/index";
import {
  binary,
  extreme,
  indexReduction,
  logical,
  type OperatorRow,
  product,
  reduction,
  row,
  unary,
  variance,
} from "./operatorRow";

const sorted = ({ values, indices }: torch.Sorted) => [values, indices];

/** Rows for what PyTorch has in `torch` and on its tensors. */
export const tensorOperators: Readonly<Record<string, OperatorRow>> = {
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
  pow: {
    ...row("input exponent", (a) => torch.pow(a.operand("input"), a.operand("exponent"))),
    tolerance: {
      relative: 1e-4,
      absolute: 1e-4,
      reason:
        "The gradient of an operand that is broadcast is a sum, of terms whose magnitudes add up to 2,500 in these cases " +
        "and cancel: half a last place of that is 1.2e-4. One such sum is 6.1e-5 off from float64's.",
      holdsFor: ({ tensors, outputs }) => tensors.some(({ shape }) => shape.join() !== outputs[0]?.shape.join()),
    },
  },
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

  acos: unary(torch.acos),
  asin: unary(torch.asin),
  atan: unary(torch.atan),
  atan2: binary(torch.atan2),
  ceil: unary(torch.ceil),
  cosh: unary(torch.cosh),
  exp2: unary(torch.exp2),
  expm1: unary(torch.expm1),
  fmax: binary(torch.fmax),
  fmin: binary(torch.fmin),
  fmod: binary(torch.fmod),
  frac: unary(torch.frac),
  hypot: binary(torch.hypot),
  lerp: row("input end weight", (a) => torch.lerp(a.tensor("input"), a.tensor("end"), a.operand("weight"))),
  log10: unary(torch.log10),
  log1p: unary(torch.log1p),
  log2: unary(torch.log2),
  logaddexp: binary(torch.logaddexp),
  masked_fill: row("input mask value", (a) =>
    torch.maskedFill(a.tensor("input"), a.tensor("mask"), a.operand("value")),
  ),
  nan_to_num: row("input nan posinf neginf", (a) =>
    torch.nanToNum(a.tensor("input"), a.number("nan", 0), a.optionalNumber("posinf"), a.optionalNumber("neginf")),
  ),
  remainder: binary(torch.remainder),
  round: row("input decimals", (a) => torch.round(a.tensor("input"), a.number("decimals", 0))),
  sinh: unary(torch.sinh),
  tan: unary(torch.tan),
  xlogy: binary(torch.xlogy),
  addcdiv: row("input tensor1 tensor2 value", (a) =>
    torch.addcdiv(a.tensor("input"), a.tensor("tensor1"), a.tensor("tensor2"), a.number("value", 1)),
  ),
  addcmul: row("input tensor1 tensor2 value", (a) =>
    torch.addcmul(a.tensor("input"), a.tensor("tensor1"), a.tensor("tensor2"), a.number("value", 1)),
  ),

  // Comparison
  isfinite: unary(torch.isfinite),
  isinf: unary(torch.isinf),
  logical_xor: logical(torch.logicalXor),
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
  max: extreme(torch.max),
  mean: reduction(torch.mean),
  min: extreme(torch.min),
  sum: reduction(torch.sum),
  all: reduction(torch.all),
  any: reduction(torch.any),
  count_nonzero: row("input dim", (a) => torch.countNonzero(a.tensor("input"), a.numbers("dim"))),
  cumprod: row("input dim dtype", (a) => torch.cumprod(a.tensor("input"), a.number("dim"), a.dtype("dtype"))),
  cumsum: row("input dim dtype", (a) => torch.cumsum(a.tensor("input"), a.number("dim"), a.dtype("dtype"))),
  "linalg.vector_norm": row("input ord dim keepdim", (a) =>
    torch.vectorNorm(a.tensor("input"), a.number("ord", 2), a.numbers("dim"), a.boolean("keepdim", false)),
  ),
  nansum: reduction(torch.nansum),
  norm: row("input p dim keepdim", (a) =>
    torch.norm(
      a.tensor("input"),
      a.textOrNumber("p", "fro", "nuc") ?? "fro",
      a.numbers("dim"),
      a.boolean("keepdim", false),
    ),
  ),
  prod: row("input dim keepdim dtype", (a) =>
    torch.prod(a.tensor("input"), a.optionalNumber("dim"), a.boolean("keepdim", false), a.dtype("dtype")),
  ),
  std: variance(torch.std),
  std_mean: variance((...given) => {
    const { std, mean } = torch.stdMean(...given);
    return [std, mean];
  }),
  var: variance(torch.var_),
  var_mean: variance((...given) => {
    const { var: variance, mean } = torch.varMean(...given);
    return [variance, mean];
  }),

  // Matrices
  addbmm: product("batch1 batch2", torch.addbmm),
  addmm: product("mat1 mat2", torch.addmm),
  addmv: product("mat vec", torch.addmv),
  baddbmm: product("batch1 batch2", torch.baddbmm),
  einsum: row("operands equation", (a) => torch.einsum(a.text("equation"), ...a.tensorList("operands"))),
  inner: row("input other", (a) => torch.inner(a.tensor("input"), a.tensor("other"))),
  outer: row("input vec2", (a) => torch.outer(a.tensor("input"), a.tensor("vec2"))),
  tensordot: row("a b dims", (a) => {
    const dims = a.numberOrLists("dims") ?? 2;
    return torch.tensordot(a.tensor("a"), a.tensor("b"), dims);
  }),
  bmm: row("input mat2", (a) => torch.bmm(a.tensor("input"), a.tensor("mat2"))),
  dot: row("input other", (a) => torch.dot(a.tensor("input"), a.tensor("other"))),
  matmul: row("input other", (a) => torch.matmul(a.tensor("input"), a.tensor("other"))),
  mm: row("input mat2", (a) => torch.mm(a.tensor("input"), a.tensor("mat2"))),
  mv: row("input vec", (a) => torch.mv(a.tensor("input"), a.tensor("vec"))),
  // Views
  chunk: row("input chunks dim", (a) => torch.chunk(a.tensor("input"), a.number("chunks"), a.number("dim", 0))),
  constant_pad_nd: row("input pad value", (a) =>
    torch.constantPadNd(a.tensor("input"), a.list("pad"), a.number("value", 0)),
  ),
  diag: row("input diagonal", (a) => torch.diag(a.tensor("input"), a.number("diagonal", 0))),
  diagonal: row("input offset dim1 dim2", (a) =>
    torch.diagonal(a.tensor("input"), a.number("offset", 0), a.number("dim1", 0), a.number("dim2", 1)),
  ),
  flip: row("input dims", (a) => torch.flip(a.tensor("input"), a.list("dims"))),
  movedim: row("input source destination", (a) =>
    torch.movedim(a.tensor("input"), a.numbers("source") ?? [], a.numbers("destination") ?? []),
  ),
  repeat: row("input *repeats", (a) => torch.repeat(a.tensor("input"), a.list("*repeats"))),
  roll: row("input shifts dims", (a) => torch.roll(a.tensor("input"), a.numbers("shifts") ?? [], a.numbers("dims"))),
  split: row("input split_size_or_sections dim", (a) =>
    torch.split(a.tensor("input"), a.numbers("split_size_or_sections") ?? [], a.number("dim", 0)),
  ),
  split_with_sizes: row("input split_sizes dim", (a) =>
    torch.splitWithSizes(a.tensor("input"), a.list("split_sizes"), a.number("dim", 0)),
  ),
  tile: row("input *dims", (a) => torch.tile(a.tensor("input"), a.list("*dims"))),
  tril: row("input diagonal", (a) => torch.tril(a.tensor("input"), a.number("diagonal", 0))),
  triu: row("input diagonal", (a) => torch.triu(a.tensor("input"), a.number("diagonal", 0))),
  unbind: row("input dim", (a) => torch.unbind(a.tensor("input"), a.number("dim", 0))),
  unflatten: row("input dim sizes", (a) => torch.unflatten(a.tensor("input"), a.number("dim"), a.list("sizes"))),
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

  // Indices
  __getitem__: row("input indices", (a) => {
    const [input, indices] = [a.tensor("input"), a.indices("indices")];
    const hasMask = indices.some((item) => item instanceof torch.Tensor && item.dtype === "bool");
    return hasMask ? torch.indexAsync(input, ...indices) : torch.index(input, ...indices);
  }),
  gather: row("input dim index", (a) => torch.gather(a.tensor("input"), a.number("dim"), a.tensor("index"))),
  index_add: row("input dim index source alpha", (a) =>
    torch.indexAdd(a.tensor("input"), a.number("dim"), a.tensor("index"), a.tensor("source"), a.number("alpha", 1)),
  ),
  index_select: row("input dim index", (a) => torch.indexSelect(a.tensor("input"), a.number("dim"), a.tensor("index"))),
  masked_select: row("input mask", (a) => torch.maskedSelect(a.tensor("input"), a.tensor("mask"))),
  repeat_interleave: row("input repeats dim", (a) => {
    const [input, repeats, dim] = [a.tensor("input"), a.operand("repeats"), a.optionalNumber("dim")];
    return typeof repeats === "number"
      ? torch.repeatInterleave(input, repeats, dim)
      : torch.repeatInterleave(input, repeats, dim);
  }),
  scatter: row("input dim index src", (a) =>
    torch.scatter(a.tensor("input"), a.number("dim"), a.tensor("index"), a.operand("src")),
  ),
  scatter_add: row("input dim index src", (a) =>
    torch.scatterAdd(a.tensor("input"), a.number("dim"), a.tensor("index"), a.tensor("src")),
  ),
  take_along_dim: row("input indices dim", (a) =>
    torch.takeAlongDim(a.tensor("input"), a.tensor("indices"), a.optionalNumber("dim")),
  ),
  unique_consecutive: row("input return_inverse return_counts dim", async (a) => {
    const { output, inverse, counts } = await torch.uniqueConsecutive(a.tensor("input"), a.optionalNumber("dim"));
    return [
      output,
      ...(a.boolean("return_inverse", false) ? [inverse] : []),
      ...(a.boolean("return_counts", false) ? [counts] : []),
    ];
  }),

  // Order
  kthvalue: row("input k dim keepdim", (a) =>
    sorted(torch.kthvalue(a.tensor("input"), a.number("k"), a.number("dim", -1), a.boolean("keepdim", false))),
  ),
  median: row("input dim keepdim", (a) =>
    a.has("dim")
      ? sorted(torch.median(a.tensor("input"), a.number("dim"), a.boolean("keepdim", false)))
      : torch.median(a.tensor("input")),
  ),
  msort: unary(torch.msort),
  searchsorted: row("sorted_sequence input out_int32 right side sorter", (a) => {
    // Indices are int32 in any case.
    a.boolean("out_int32", false);
    const side = a.oneOf("side", "left", "right");
    return torch.searchsorted(a.tensor("sorted_sequence"), a.operand("input"), {
      right: a.boolean("right", false) || side === "right",
      sorter: a.optionalTensor("sorter"),
    });
  }),
  sort: row("input dim descending stable", (a) => {
    // It is always stable.
    a.boolean("stable", false);
    return sorted(torch.sort(a.tensor("input"), a.number("dim", -1), a.boolean("descending", false)));
  }),
  topk: row("input k dim largest sorted", (a) => {
    // They are always in order.
    a.boolean("sorted", true);
    return sorted(torch.topk(a.tensor("input"), a.number("k"), a.number("dim", -1), a.boolean("largest", true)));
  }),

  // Probabilities and losses
  log_softmax: row("input dim", (a) => torch.logSoftmax(a.tensor("input"), a.number("dim"))),
  softmax: row("input dim", (a) => torch.softmax(a.tensor("input"), a.number("dim"))),
};

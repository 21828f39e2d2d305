import shared from "../../../shaders/crossEntropy.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { autocasting } from "../autocast";
import { isFloating } from "../dtype";
import { describeShape, OperatorError, type Shape, sameShape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { add, div, mul, ne, neg, sub, to, where } from "./elementwise";
import { exponentialSum } from "./mathShader";
import { floating } from "./promotion";
import { sum } from "./reduction";
import { logSoftmax, softmaxGradient, softmaxOver } from "./softmax";
import type { BufferValue, LoweredNode, Lowering, Operator, TensorType } from "./table";
import { reshape, unsqueeze } from "./views";

export type Reduction = "mean" | "sum" | "none";

type IndexAttributes = { readonly ignoreIndex: number };

/** One kernel, with or without class weights: its storage bindings are named in order. */
function shader(name: string, isWeighted: boolean, reads: readonly string[], body: string): Shader {
  const bindings = [...reads, ...(isWeighted ? ["class_weights"] : [])];
  const declared = bindings.map(
    (of, i) => `@group(0) @binding(${i + 1}) var<storage, read> ${of}: array<${of === "targets" ? "i32" : "f32"}>;`,
  );
  const weight = isWeighted ? "class_weights[c]" : "1.0";
  return {
    name,
    bindings: [...bindings.map(() => "read" as const), "write"],
    code: `${shared}
${declared.join("\n")}
@group(0) @binding(${bindings.length + 1}) var<storage, read_write> out: array<f32>;
fn weight(c: u32) -> f32 { return ${weight}; }
${reads.includes("logits") ? rowFunction : ""}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let position = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (position >= u.positions) { return; }
  let label = targets[position];
  let is_ignored = label == u.ignore_index;
  let is_valid = label >= 0 && u32(label) < u.classes;
  ${body}
}`,
  };
}

const rowFunction = /* wgsl */ `${exponentialSum}
struct Row { first: u32, top: f32, total: f32 }
fn row_at(position: u32) -> Row {
  let first = first_of(position);
  let end = first + u.classes * u.inner;
  var top = logits[first];
  for (var at = first + u.inner; at < end; at += u.inner) { top = max(top, logits[at]); }
  var total = 0.0;
  for (var at = first; at < end; at += u.inner) { total += exp(logits[at] - top); }
  return Row(first, top, sum_of_exponentials(total));
}`;

const lossBody = /* wgsl */ `
  if (is_ignored) { out[position] = 0.0; return; }
  if (!is_valid) { out[position] = not_a_number(position); return; }
  let row = row_at(position);
  let log_total = log_of_exponentials(row.total);
  let own = row.top - logits[row.first + u32(label) * u.inner] + log_total;
  var loss = (1.0 - u.smoothing) * weight(u32(label)) * own;
  if (u.smoothing > 0.0) {
    var all = 0.0;
    for (var c = 0u; c < u.classes; c++) { all += weight(c) * (row.top - logits[row.first + c * u.inner] + log_total); }
    loss += u.smoothing / f32(u.classes) * all;
  }
  out[position] = loss;`;

const gradientBody = /* wgsl */ `
  let row = row_at(position);
  let share = u.smoothing / f32(u.classes);
  var own = 0.0;
  var mass = 0.0;
  if (!is_ignored) {
    own = (1.0 - u.smoothing) * select(not_a_number(position), weight(u32(max(label, 0))), is_valid);
    mass = own;
    if (u.smoothing > 0.0) { for (var c = 0u; c < u.classes; c++) { mass += share * weight(c); } }
  }
  let g = select(gradient[position], 0.0, is_ignored);
  for (var c = 0u; c < u.classes; c++) {
    let at = row.first + c * u.inner;
    let wanted = share * weight(c) + select(0.0, own, i32(c) == label);
    out[at] = g * (exp(logits[at] - row.top) / row.total * mass - wanted);
  }`;

/** The weight that each class has in a position's loss: (1 - e) w at the target, e / C w everywhere. */
const targetBody = /* wgsl */ `
  let first = first_of(position);
  let share = u.smoothing / f32(u.classes);
  for (var c = 0u; c < u.classes; c++) {
    var wanted = share * weight(c) + select(0.0, (1.0 - u.smoothing) * weight(c), i32(c) == label);
    if (!is_valid) { wanted = not_a_number(c); }
    out[first + c * u.inner] = select(wanted, 0.0, is_ignored);
  }`;

/** The weight of each position in a mean. */
const countBody = /* wgsl */ `out[position] = select(weight(u32(max(label, 0))), 0.0, is_ignored);`;

const variants = (name: string, reads: readonly string[], body: string) =>
  [shader(name, false, reads, body), shader(name, true, reads, body)] as const;
const lossShaders = variants("crossEntropy", ["logits", "targets"], lossBody);
const gradientShaders = variants("crossEntropyGradient", ["logits", "targets", "gradient"], gradientBody);
const targetShaders = variants("crossEntropyTarget", ["targets"], targetBody);
const countShaders = variants("crossEntropyCount", ["targets"], countBody);

function emit(
  lowering: Lowering,
  [plain, weighted]: readonly [Shader, Shader],
  { inputs, attributes: { ignoreIndex }, scalars }: LoweredNode<IndexAttributes>,
  out: BufferValue,
  classesShape: Shape,
): BufferValue {
  const shaderOf = inputs.length === plain.bindings.length ? weighted : plain;
  const classes = classesShape[1]!;
  const positions = classes === 0 ? 0 : sizeOf(classesShape) / classes;
  const smoothing = scalars[0] ?? { literal: 0 };
  lowering.dispatch({
    shader: shaderOf,
    bindings: [...inputs.map((input) => lowering.dense(input)), out],
    uniforms: [
      positions,
      classes,
      sizeOf(classesShape.slice(2)),
      { i32: ignoreIndex },
      { scalar: smoothing, dtype: "float32" },
    ],
    grid: spread(Math.ceil(positions / 64)),
    work: positions * classes * 20,
  });
  return out;
}

const float32 = (shape: Shape): TensorType => ({ shape, dtype: "float32" });

/** Inputs: logits [N, C, ...], targets [N, ...], class weights [C] if any. Scalars: the smoothing. */
const lossRow: Operator<IndexAttributes> = {
  name: "crossEntropy",
  infer: ([, targets]) => float32(targets!.shape),
  lower: (lowering, node) => emit(lowering, lossShaders, node, lowering.result(), node.inputs[0]!.shape),
  backward: ({ inputs: [logits, targets, ...weights], gradient, attributes, scalars }) => [
    apply(gradientRow, [logits!, targets!, gradient, ...weights], attributes, scalars),
  ],
};

/** Inputs: logits, targets, the gradient of the losses, class weights if any. */
const gradientRow: Operator<IndexAttributes> = {
  name: "crossEntropyGradient",
  infer: ([logits]) => logits!,
  lower: (lowering, node) => emit(lowering, gradientShaders, node, lowering.result(), node.shape),
  // g (p A - a), with p the probabilities, a what the classes weigh and A its sum over the classes.
  backward({ inputs: [logits, targets, g, ...weights], gradient, attributes, scalars, needs }) {
    const a = apply(targetRow, [targets!, ...weights], { ...attributes, shape: logits!.shape }, scalars);
    const mass = sum(a, 1, true);
    const p = softmaxOver(logits!, 1);
    return [
      needs[0] ? softmaxGradient(mul(gradient, mul(unsqueeze(g!, 1), mass)), p, 1) : null,
      null,
      needs[2] ? sum(mul(gradient, sub(mul(p, mass), a)), 1) : null,
    ];
  },
};

type TargetAttributes = IndexAttributes & { readonly shape: Shape };

/** Inputs: targets, class weights if any. Attributes: the logits' shape. */
const targetRow: Operator<TargetAttributes> = {
  name: "crossEntropyTarget",
  infer: (_, { shape }) => float32(shape),
  lower: (lowering, node) => emit(lowering, targetShaders, node, lowering.result(), node.shape),
};

const countRow: Operator<TargetAttributes> = {
  name: "crossEntropyCount",
  infer: ([targets]) => float32(targets!.shape),
  lower: (lowering, node) => emit(lowering, countShaders, node, lowering.result(), node.attributes.shape),
};

export const crossEntropy: readonly Operator[] = [lossRow, gradientRow, targetRow, countRow];

export interface NllLossOptions {
  /** The classes' weights, [C]. */
  readonly weight?: Tensor | null;
  /** Positions with this target count for nothing. */
  readonly ignoreIndex?: number;
  readonly reduction?: Reduction;
}

export interface CrossEntropyOptions extends NllLossOptions {
  /** The share of the target that is spread evenly over all classes. */
  readonly labelSmoothing?: number;
}

/** Logits as [N, C, ...] and targets as [N, ...], from [C] and [] too. */
function batched(operator: string, input: Tensor, target: Tensor): { logits: Tensor; targets: Tensor } {
  const expected = input.shape.length < 2 ? [] : input.shape.toSpliced(1, 1);
  if (input.ndim === 0 || !sameShape(target.shape, expected))
    throw new OperatorError(
      operator,
      `the input has shape ${describeShape(input.shape)} and the target ${describeShape(target.shape)}; ` +
        "expected [N, C, ...] and [N, ...], or [C] and []",
    );
  const targets = to(target, "int32");
  if (input.ndim > 1) return { logits: input, targets };
  return { logits: reshape(input, [1, input.numel]), targets: reshape(targets, [1]) };
}

function weightsOf(operator: string, weight: Tensor | null | undefined, classes: number): Tensor[] {
  if (!weight) return [];
  if (!sameShape(weight.shape, [classes]))
    throw new OperatorError(
      operator,
      `weight has shape ${describeShape(weight.shape)}; expected [${classes}], one for each class`,
    );
  return [weight];
}

/** Reduces losses of index targets: a mean is over the targets' class weights. */
function reduced(
  losses: Tensor,
  targets: Tensor,
  attributes: TargetAttributes,
  weights: readonly Tensor[],
  reduction: Reduction,
  shape: Shape,
): Tensor {
  switch (reduction) {
    case "none":
      return reshape(losses, shape);
    case "sum":
      return sum(losses);
    case "mean":
      return div(sum(losses), sum(apply(countRow, [targets, ...weights], attributes)));
  }
}

/**
 * The cross-entropy of softmax(input) with the target, fused.
 * @param input logits, [N, C, ...] or [C].
 * @param target class indices (int32), [N, ...] or []; or class probabilities in the input's shape (float32).
 */
export const crossEntropyLoss = autocasting(
  "crossEntropy",
  (
    input: Tensor,
    target: Tensor,
    { weight, ignoreIndex = -100, reduction = "mean", labelSmoothing = 0 }: CrossEntropyOptions = {},
  ): Tensor => {
    if (isFloating(target.dtype)) return probabilityLoss(input, target, weight ?? null, reduction, labelSmoothing);
    const { logits, targets } = batched("crossEntropy", input, target);
    const weights = weightsOf("crossEntropy", weight, logits.shape[1]!);
    const losses = apply(lossRow, [floating(logits), targets, ...weights], { ignoreIndex }, [labelSmoothing]);
    return reduced(losses, targets, { ignoreIndex, shape: logits.shape }, weights, reduction, target.shape);
  },
);

function probabilityLoss(
  input: Tensor,
  target: Tensor,
  weight: Tensor | null,
  reduction: Reduction,
  smoothing: number,
): Tensor {
  if (!sameShape(input.shape, target.shape) || input.ndim === 0)
    throw new OperatorError(
      "crossEntropy",
      `the target of probabilities has shape ${describeShape(target.shape)}; expected the input's, ${describeShape(input.shape)}`,
    );
  const dim = input.ndim === 1 ? 0 : 1;
  const classes = input.shape[dim]!;
  const smooth = smoothing === 0 ? target : add(mul(target, 1 - smoothing), smoothing / classes);
  const [weights] = weightsOf("crossEntropy", weight, classes);
  const spread = weights && reshape(weights, [classes, ...new Array<number>(input.ndim - dim - 1).fill(1)]);
  const losses = neg(sum(mul(logSoftmax(input, dim), spread ? mul(smooth, spread) : smooth), dim));
  switch (reduction) {
    case "none":
      return losses;
    case "sum":
      return sum(losses);
    case "mean":
      return div(sum(losses), Math.max(1, input.numel / classes));
  }
}

/**
 * The negative log-likelihood of class indices.
 * @param input log-probabilities, [N, C, ...] or [C].
 * @param target class indices (int32), [N, ...] or [].
 */
export const nllLoss = autocasting(
  "nllLoss",
  (input: Tensor, target: Tensor, { weight, ignoreIndex = -100, reduction = "mean" }: NllLossOptions = {}): Tensor => {
    const { logits, targets } = batched("nllLoss", input, target);
    const attributes = { ignoreIndex, shape: logits.shape };
    const weights = weightsOf("nllLoss", weight, logits.shape[1]!);
    const wanted = apply(targetRow, [targets, ...weights], attributes, [0]);
    // A class that is not the target may have the log-probability -Infinity, and 0 times that is NaN.
    const losses = neg(sum(where(ne(wanted, 0), mul(wanted, logits), 0), 1));
    return reduced(losses, targets, attributes, weights, reduction, target.shape);
  },
);

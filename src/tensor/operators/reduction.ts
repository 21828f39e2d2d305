import { spread } from "../../gpu";
import { apply } from "../apply";
import { autocasting } from "../autocast";
import { type ComputeType, type DType, wgslType } from "../dtype";
import { describeShape, normalizeDim, normalizeDims, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { arange } from "./creation";
import { add, div, eq, exp, isnan, log, logicalOr, mul, sub, to, where } from "./elementwise";
import { collapse, type StridedViews } from "./elementwiseKernel";
import { lowerIndexReduction } from "./indexReduction";
import { isNan } from "./mathShader";
import { floating } from "./promotion";
import { isfinite } from "./special";
import {
  type BufferValue,
  innerOffset,
  type Lowering,
  type Operator,
  type Producer,
  type ScalarReference,
  type TensorType,
} from "./table";
import { expand, reshape } from "./views";

export type ReductionAttributes = { readonly dims: readonly number[] };

/** Elements that one invocation reduces in turn; longer reductions go in stages, which also keeps sums accurate. */
const runLength = 512;
const maxRank = 8;

export interface Combination {
  readonly name: string;
  /** WGSL statements that declare what `combine` changes; TYPE is the elements' type. */
  readonly start: string;
  /** WGSL statements that take in the element `x`, which is number `j` of row `o`. */
  readonly combine: string;
  /** The WGSL expression of the result. */
  readonly finish: string;
  readonly needsElements: boolean;
  /** The result's type where it isn't the input's. */
  readonly result: DType | null;
}

/** Runs of 32 are added up apart, which keeps long sums accurate. */
const sumOf: Combination = {
  name: "sum",
  start: "var total = TYPE(0); var part = TYPE(0); var pending = 0u;",
  combine: "part += x; pending++; if (pending == 32u) { total += part; part = TYPE(0); pending = 0u; }",
  finish: "total + part",
  needsElements: false,
  result: null,
};
const extreme = (name: string, operator: string): Combination => ({
  name,
  start: `var total = load_a(base + outer_at(outer_lane) + inner_lane * u.inner_stride);`,
  combine: `if (x ${operator} total || (is_nan(f32(x)) && !is_nan(f32(total)))) { total = x; }`,
  finish: "total",
  needsElements: true,
  result: null,
});
const largest = extreme("amax", ">");
const smallest = extreme("amin", "<");

const fields = /* wgsl */ `
  kept_shape: array<vec4u, 2>,
  kept_strides: array<vec4u, 2>,
  // Of the reduced dimensions but the innermost.
  outer_shape: array<vec4u, 2>,
  outer_strides: array<vec4u, 2>,
  kept_rank: u32,
  outer_rank: u32,
  outer_length: u32,
  outer_lanes: u32,
  inner_length: u32,
  inner_lanes: u32,
  inner_stride: u32,
  offset: u32,
  results: u32,
  divisor: f32,`;

function reductionCode(combination: Combination, dtype: ComputeType): string {
  const { name } = combination;
  const type = wgslType[dtype];
  const [start, combine, last] = [combination.start, combination.combine, combination.finish].map((code) =>
    code.replaceAll("TYPE", type),
  );
  const finish = name === "sum" && dtype === "float32" ? `(${last}) / u.divisor` : last;
  return /* wgsl */ `
fn kept_at(index: u32) -> u32 {
  var at = 0u;
  var rest = index;
  for (var d = 0u; d < u.kept_rank; d++) {
    let size = u.kept_shape[d >> 2u][d & 3u];
    at += (rest % size) * u.kept_strides[d >> 2u][d & 3u];
    rest /= size;
  }
  return at;
}
fn outer_at(index: u32) -> u32 {
  if (u.outer_rank <= 1u) { return index * u.outer_strides[0].x; }
  var at = 0u;
  var rest = index;
  for (var d = 0u; d < u.outer_rank; d++) {
    let size = u.outer_shape[d >> 2u][d & 3u];
    at += (rest % size) * u.outer_strides[d >> 2u][d & 3u];
    rest /= size;
  }
  return at;
}
// Each kept position has outer_lanes * inner_lanes results, each of which takes every outer_lanes-th and
// inner_lanes-th element.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.results) { return; }
  let inner_lane = i % u.inner_lanes;
  let outer_lane = i / u.inner_lanes % u.outer_lanes;
  let base = u.offset + kept_at(i / (u.inner_lanes * u.outer_lanes));
  ${start}
  for (var o = outer_lane; o < u.outer_length; o += u.outer_lanes) {
    let row = base + outer_at(o);
    for (var j = inner_lane; j < u.inner_length; j += u.inner_lanes) {
      let x = load_a(row + j * u.inner_stride);
      ${combine}
    }
  }
  store(i, ${finish});
}`;
}

const quadFields = "quads: u32, rows: u32, lanes: u32, results: u32, offset: u32, divisor: f32,";

/** Vectors that an invocation adds up before it adds them to the rest: what keeps long sums accurate. */
const vectorRun = 8;

/** Each row of `quads` vectors has `lanes` results, each of every `lanes`-th vector. */
const rowSumCode = (type: string, finish: string) => /* wgsl */ `
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.results) { return; }
  let lanes = u.lanes;
  let first = u.offset + (i / lanes) * u.quads;
  let end = first + u.quads;
  let run = lanes * ${vectorRun}u;
  var total = vec4<${type}>();
  for (var at = first + i % lanes; at < end; at += run) {
    var part = vec4<${type}>();
    let part_end = min(at + run, end);
    for (var q = at; q < part_end; q += lanes) { part += load_a(q); }
    total += part;
  }
  store(i, ((total.x + total.y) + (total.z + total.w))${finish});
}`;

/** Each of `quads` columns of vectors has `lanes` results, each of every `lanes`-th of `rows` rows. */
const columnSumCode = (type: string, finish: string) => /* wgsl */ `
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.results) { return; }
  let quads = u.quads;
  let rows = u.rows;
  let step = u.lanes * quads;
  let run = step * ${vectorRun}u;
  let end = u.offset + rows * quads;
  var total = vec4<${type}>();
  for (var at = u.offset + i; at < end; at += run) {
    var part = vec4<${type}>();
    let part_end = min(at + run, end);
    for (var q = at; q < part_end; q += step) { part += load_a(q); }
    total += part;
  }
  let sum = total${finish};
  store(4u * i, sum.x);
  store(4u * i + 1u, sum.y);
  store(4u * i + 2u, sum.z);
  store(4u * i + 3u, sum.w);
}`;

/** Sums by vectors of 4, of whole rows or whole columns; null where the input is neither. */
function sumOfRows(
  lowering: Lowering,
  input: BufferValue,
  kept: StridedViews,
  summed: StridedViews,
  divisor: ScalarReference,
): BufferValue | null {
  if (kept.shape.length > 1 || summed.shape.length !== 1) return null;
  const [positions = 1] = kept.shape;
  const [keptStride = 0] = kept.strides[0]!;
  const length = summed.shape[0]!;
  const stride = summed.strides[0]![0]!;
  const isRows = stride === 1 && length % 4 === 0 && (positions === 1 || keptStride === length);
  const isColumns = keptStride === 1 && positions % 4 === 0 && stride === positions;
  if (!isRows && !isColumns) return null;
  const type = wgslType[input.dtype];
  // A long row is summed as several, so that neighbours in time are neighbours in memory.
  let pieces = 1;
  while (isRows && length / pieces > 64 * runLength && (length / pieces) % 8 === 0) pieces *= 2;
  const lanes = length > 2 * runLength ? Math.ceil(length / pieces / runLength) : 1;
  const inStages = lanes * pieces > 1;
  const results = isRows ? positions * pieces * lanes : (positions / 4) * lanes;
  const finish = input.dtype === "float32" ? " / u.divisor" : "";
  const producer: Producer = {
    name: isRows ? "sum" : "sum of columns",
    fields: quadFields,
    inputs: [{ name: "a", type: `vec4<${type}>`, value: input }],
    loadsFirst: "quad",
    code: isRows ? rowSumCode(type, finish) : columnSumCode(type, finish),
    uniforms: [
      ...[isRows ? length / pieces / 4 : positions / 4, length, lanes, results, innerOffset(input) / 4],
      { scalar: inStages ? { literal: 1 } : divisor, dtype: "float32" },
    ],
    grid: spread(Math.ceil(results / 64)),
    work: positions * length,
  };
  if (!inStages) return lowering.produce(producer);
  const partial = lowering.allocate(isRows ? [positions, pieces * lanes] : [lanes, positions], input.dtype);
  lowering.produceInto(producer, partial);
  return reduced(lowering, sumOf, partial, [isRows ? 1 : 0], divisor);
}

/** Reduces `input` over `dims`; the result's elements are the kept positions in row-major order. */
function reduced(
  lowering: Lowering,
  combination: Combination,
  input: BufferValue,
  dims: readonly number[],
  divisor: ScalarReference = { literal: 1 },
): BufferValue {
  const { shape, strides } = input;
  const kept = shape.flatMap((_, d) => (dims.includes(d) ? [] : [d]));
  const pick = (list: readonly number[], of: readonly number[]) => of.map((d) => list[d]!);
  const keptView = collapse(pick(shape, kept), [pick(strides, kept)]);
  const reducedView = collapse(pick(shape, dims), [pick(strides, dims)]);
  const positions = sizeOf(keptView.shape);
  if (combination === sumOf && innerOffset(input) % 4 === 0 && positions > 0) {
    const byQuads = sumOfRows(lowering, input, keptView, reducedView, divisor);
    if (byQuads) return byQuads;
  }
  const [innerLength = 1, ...outerShape] = reducedView.shape;
  const [innerStride = 0, ...outerStrides] = reducedView.strides[0]!;
  const outerLength = sizeOf(outerShape);
  const length = innerLength * outerLength;
  const inStages = combination.result === null && length > 2 * runLength;
  // Neighbouring invocations take neighbouring elements.
  const innerLanes = inStages ? Math.min(innerLength, Math.ceil(length / runLength)) : 1;
  const outerLanes = inStages ? Math.min(outerLength, Math.ceil(length / (runLength * innerLanes))) : 1;
  const lanes = innerLanes * outerLanes;
  const padded = (list: readonly number[]) => {
    if (list.length > maxRank)
      throw new OperatorError(combination.name, `the input ${describeShape(shape)} is too scattered a view`);
    return [...list, ...new Array<number>(maxRank - list.length).fill(0)];
  };
  const producer: Producer = {
    name: combination.name,
    fields,
    inputs: [{ name: "a", type: wgslType[input.dtype], value: input }],
    loadsFirst: "one",
    helpers: isNan,
    code: reductionCode(combination, input.dtype),
    uniforms: [
      ...padded(keptView.shape),
      ...padded(keptView.strides[0]!),
      ...padded(outerShape),
      ...padded(outerStrides),
      keptView.shape.length,
      outerShape.length,
      outerLength,
      outerLanes,
      innerLength,
      innerLanes,
      innerStride,
      innerOffset(input),
      positions * lanes,
      { scalar: inStages ? { literal: 1 } : divisor, dtype: "float32" },
    ],
    grid: spread(Math.ceil((positions * lanes) / 64)),
    work: positions * length * 2,
  };
  if (!inStages) return lowering.produce(producer);
  const partial = lowering.allocate([positions, lanes], input.dtype);
  lowering.produceInto(producer, partial);
  return reduced(lowering, combination, partial, [1], divisor);
}

/** The sum over the first dimension, in order, as the node's result. */
export const sumParts = (lowering: Lowering, parts: BufferValue): BufferValue => reduced(lowering, sumOf, parts, [0]);

export function reductionRow(
  combination: Combination,
  backward?: Operator<ReductionAttributes>["backward"],
): Operator<ReductionAttributes> {
  const { name, needsElements, result } = combination;
  return {
    name,
    infer: ([input], { dims }) => reducedType(name, input!, dims, needsElements, result),
    lower(lowering, { inputs: [input], attributes: { dims }, scalars }) {
      return reduced(lowering, combination, lowering.buffer(input!), dims, scalars[0]);
    },
    ...(backward && { backward }),
  };
}

function reducedType(
  name: string,
  { shape, dtype }: TensorType,
  dims: readonly number[],
  needsElements: boolean,
  result: DType | null,
): TensorType {
  if (needsElements && dims.some((d) => shape[d] === 0))
    throw new OperatorError(
      name,
      `the input has shape ${describeShape(shape)}; expected at least one element to reduce`,
    );
  return { shape: shape.map((size, d) => (dims.includes(d) ? 1 : size)), dtype: result ?? dtype };
}

const indexRow = (name: string, better: ">" | "<"): Operator<ReductionAttributes> => ({
  name,
  infer: ([input], { dims }) => reducedType(name, input!, dims, true, "int32"),
  lower: (lowering, node) => lowerIndexReduction(lowering, name, better, node),
});

/** Scalars: what the sum is divided by. */
const sumRow = reductionRow(sumOf, ({ inputs: [input], gradient, scalars: [divisor] }) => [
  expand(divisor === 1 ? gradient : mul(gradient, 1 / divisor!), input!.shape),
]);
/** Elements that tie share the gradient, as PyTorch has it. */
const extremeBackward: Operator<ReductionAttributes>["backward"] = ({
  inputs: [input],
  output,
  gradient,
  attributes: { dims },
}) => {
  const isExtreme = logicalOr(eq(input!, output), isnan(input!));
  const mask = to(isExtreme, "float32");
  return [mul(mask, div(gradient, sumOver(mask, dims)))];
};
const amaxRow = reductionRow(largest, extremeBackward);
const aminRow = reductionRow(smallest, extremeBackward);
const argmaxRow = indexRow("argmax", ">");
const argminRow = indexRow("argmin", "<");

export const reduction: readonly Operator[] = [sumRow, amaxRow, aminRow, argmaxRow, argminRow];

export type Dims = number | readonly number[] | null;

const sumOver = (input: Tensor, dims: readonly number[], divisor = 1): Tensor =>
  apply(sumRow, [input], { dims }, [divisor]);

/** Without the reduced dimensions, unless they are to be kept. */
function dropped(result: Tensor, dims: readonly number[], keepdim: boolean): Tensor {
  return keepdim
    ? result
    : reshape(
        result,
        result.shape.filter((_, d) => !dims.includes(d)),
      );
}

/** The sum over `dim` (all of them by default). Accurate: partial sums are added in stages. Integers stay integers. */
export const sum = autocasting("sum", (input: Tensor, dim: Dims = null, keepdim = false): Tensor => {
  const dims = normalizeDims("sum", dim, input.ndim);
  const numeric = input.dtype === "bool" ? to(input, "int32") : input;
  return dropped(sumOver(numeric, dims), dims, keepdim);
});

const countOf = (shape: Shape, dims: readonly number[]): number => sizeOf(dims.map((d) => shape[d]!));

export const mean = autocasting("mean", (input: Tensor, dim: Dims = null, keepdim = false): Tensor => {
  const dims = normalizeDims("mean", dim, input.ndim);
  return dropped(sumOver(floating(input), dims, countOf(input.shape, dims)), dims, keepdim);
});

export interface VarianceOptions {
  /** The variance is divided by the number of elements less this. 1: the unbiased estimate. */
  readonly correction?: number;
  readonly keepdim?: boolean;
}

export const variance = autocasting(
  "var",
  (input: Tensor, dim: Dims = null, { correction = 1, keepdim = false }: VarianceOptions = {}): Tensor => {
    const dims = normalizeDims("var", dim, input.ndim);
    const centered = sub(input, mean(input, dims, true));
    const divisor = Math.max(0, countOf(input.shape, dims) - correction);
    return dropped(sumOver(mul(centered, centered), dims, divisor), dims, keepdim);
  },
);

const extremeOver =
  (operator: Operator<ReductionAttributes>) =>
  (input: Tensor, dim: Dims = null, keepdim = false) => {
    const dims = normalizeDims(operator.name, dim, input.ndim);
    return dropped(apply(operator, [input], { dims }), dims, keepdim);
  };
/** The largest element over `dim`; ties share the gradient. NaN where there is one. */
export const amax = extremeOver(amaxRow);
export const amin = extremeOver(aminRow);

const indexOver =
  (operator: Operator<ReductionAttributes>) =>
  (input: Tensor, dim: number | null = null, keepdim = false) => {
    if (dim !== null) {
      const dims = input.ndim === 0 ? [] : [normalizeDim(operator.name, dim, input.ndim)];
      return dropped(apply(operator, [input], { dims }), dims, keepdim);
    }
    const index = apply(operator, [reshape(input, [input.numel])], { dims: [0] });
    return reshape(index, keepdim ? input.shape.map(() => 1) : []);
  };
/** The index (int32) of the first largest element along `dim`, or among all in row-major order. */
export const argmax = indexOver(argmaxRow);
export const argmin = indexOver(argminRow);

const valuesAndIndices =
  (index: typeof argmax) =>
  (input: Tensor, dim: number, keepdim = false) => {
    if (input.ndim === 0) return { values: reshape(input, []), indices: index(input, dim) };
    const d = normalizeDim("max", dim, input.ndim);
    const indices = index(input, d, true);
    const positions = reshape(
      arange(input.shape[d]!),
      input.shape.map((_, i) => (i === d ? -1 : 1)),
    );
    const chosen = sum(where(eq(positions, indices), input, 0), d, true);
    return { values: dropped(chosen, [d], keepdim), indices: dropped(indices, [d], keepdim) };
  };
/** The largest element along a dimension, with its index (the first), which alone gets the gradient. */
export const maxOver = valuesAndIndices(argmax);
export const minOver = valuesAndIndices(argmin);

/** log(sum(exp(input))) over `dim`, without overflow. */
export const logsumexp = autocasting("logsumexp", (input: Tensor, dim: Dims, keepdim = false): Tensor => {
  const dims = normalizeDims("logsumexp", dim, input.ndim);
  const top = amax(input, dims, true).detach();
  // An infinite largest element is the result itself; subtracting it would give NaN.
  const shift = where(isfinite(top), top, 0);
  return dropped(add(log(sum(exp(sub(input, shift)), dims, true)), shift), dims, keepdim);
});

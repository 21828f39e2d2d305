import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { type ComputeType, isFloating, wgslType } from "../dtype";
import { describeShape, normalizeDim, OperatorError, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { eq, gt, isnan, logicalAnd, logicalOr, type Operand, sub, to, where } from "./elementwise";
import { gather } from "./indexing";
import { isNan } from "./mathShader";
import { promoted } from "./promotion";
import { amax, sum } from "./reduction";
import { emitSort } from "./sortKernel";
import type { BufferValue, Operator } from "./table";
import { narrow, reshape, squeeze, transpose } from "./views";

type SortAttributes = { readonly descending: boolean };

/** Of rows [R, N]: the positions, in order, of each row's elements. Equal ones keep their order; NaN is largest. */
const argsortRow: Operator<SortAttributes> = {
  name: "argsort",
  infer: ([input]) => ({ shape: input!.shape, dtype: "int32" }),
  lower(lowering, { inputs: [input], attributes: { descending } }) {
    const order = lowering.result();
    if (sizeOf(order.shape) > 0) emitSort(lowering, lowering.dense(lowering.buffer(input!)), descending, order);
    return order;
  },
};

type SearchAttributes = { readonly right: boolean };

const searchShader = (type: string): Shader => ({
  name: "searchsorted",
  bindings: ["read", "read", "write"],
  code: /* wgsl */ `
struct Uniforms { count: u32, values: u32, length: u32, pitch: u32, is_right: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> sequences: array<${type}>;
@group(0) @binding(2) var<storage, read> values: array<${type}>;
@group(0) @binding(3) var<storage, read_write> out: array<i32>;
${isNan}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  let first = i / u.values * u.pitch;
  let x = values[i];
  var low = 0u;
  var high = u.length;
  while (low < high) {
    let middle = (low + high) / 2u;
    let y = sequences[first + middle];
    let is_before = y < x || (u.is_right == 1u && y == x) || is_nan(f32(x)) || is_nan(f32(y));
    if (is_before) { low = middle + 1u; } else { high = middle; }
  }
  out[i] = i32(low);
}`,
});
const searchShaders = {
  float32: searchShader(wgslType.float32),
  int32: searchShader(wgslType.int32),
  bool: searchShader(wgslType.bool),
} as const satisfies Record<ComputeType, Shader>;

/** Inputs: ascending rows [S, N], or one for all values, and values [S, M]. */
const searchsortedRow: Operator<SearchAttributes> = {
  name: "searchsorted",
  infer: ([, values]) => ({ shape: values!.shape, dtype: "int32" }),
  lower(lowering, { inputs, attributes: { right }, shape }) {
    const [sequences, values] = inputs.map((input) => lowering.dense(lowering.buffer(input))) as [
      BufferValue,
      BufferValue,
    ];
    const out = lowering.result();
    const count = sizeOf(shape);
    const [rows, length] = sequences.shape as [number, number];
    lowering.dispatch({
      shader: searchShaders[values.dtype],
      bindings: [sequences, values, out],
      uniforms: [count, shape[1]!, length, rows === 1 ? 0 : length, right ? 1 : 0],
      grid: spread(Math.ceil(count / 64)),
      work: count * 4 * Math.log2(length + 2),
    });
    return out;
  },
};

export const sorting: readonly Operator[] = [argsortRow, searchsortedRow];

export interface Sorted {
  readonly values: Tensor;
  /** Where in the dimension each value was (int32). */
  readonly indices: Tensor;
}

/** The positions of the elements along `dim` in their order. Equal ones keep theirs; NaN is larger than infinity. */
export function argsort(input: Tensor, dim = -1, descending = false): Tensor {
  const d = normalizeDim("argsort", dim, input.ndim);
  const last = input.ndim === 0 ? reshape(input, [1]) : transpose(input, d, -1);
  const length = last.shape.at(-1)!;
  const rows = reshape(last, [length === 0 ? 0 : last.numel / length, length]);
  const order = reshape(apply(argsortRow, [rows], { descending }), last.shape);
  return input.ndim === 0 ? reshape(order, []) : transpose(order, d, -1);
}

const along = (input: Tensor, dim: number, indices: Tensor): Sorted => ({
  values: gather(input, dim, indices),
  indices,
});

/** The elements along `dim` in order, and where they were. Stable; NaN is larger than infinity. */
export const sort = (input: Tensor, dim = -1, descending = false): Sorted =>
  along(input, dim, argsort(input, dim, descending));

/** The elements along the first dimension in order. */
export const msort = (input: Tensor): Tensor => sort(input, 0).values;

/** The `k` largest (or smallest) elements along `dim`, in order, and where they are. */
export function topk(input: Tensor, k: number, dim = -1, largest = true): Sorted {
  const d = normalizeDim("topk", dim, input.ndim);
  checkCount("topk", input, k, d, 0);
  const order = argsort(input, d, largest);
  return along(input, d, input.ndim === 0 ? order : narrow(order, d, 0, k));
}

function checkCount(operator: string, input: Tensor, k: number, dim: number, least: number): void {
  const size = input.shape[dim] ?? 1;
  if (!Number.isInteger(k) || k < least || k > size)
    throw new OperatorError(
      operator,
      `k is ${k}; expected an integer from ${least} to ${size}, the size of dimension ${dim} of ${describeShape(input.shape)}`,
    );
}

/** The `k`-th smallest element along `dim` (the smallest is the first), and where it is. */
export function kthvalue(input: Tensor, k: number, dim = -1, keepdim = false): Sorted {
  const d = normalizeDim("kthvalue", dim, input.ndim);
  checkCount("kthvalue", input, k, d, 1);
  const order = argsort(input, d);
  return dropped(along(input, d, input.ndim === 0 ? order : narrow(order, d, k - 1, 1)), d, keepdim);
}

function dropped(sorted: Sorted, dim: number, keepdim: boolean): Sorted {
  if (keepdim || sorted.indices.ndim === 0) return sorted;
  return { values: squeeze(sorted.values, dim), indices: squeeze(sorted.indices, dim) };
}

/** The median along `dim` (the lower of two in the middle), and where it is. NaN where there is one. */
function medianOver(input: Tensor, dim: number, keepdim: boolean): Sorted {
  const d = normalizeDim("median", dim, input.ndim);
  const size = input.shape[d] ?? 1;
  if (size === 0)
    throw new OperatorError(
      "median",
      `the input has shape ${describeShape(input.shape)}; expected at least one element`,
    );
  const order = argsort(input, d);
  if (input.ndim === 0) return along(input, d, order);
  const middle = Math.floor((size - 1) / 2);
  if (!isFloating(input.dtype)) return dropped(along(input, d, narrow(order, d, middle, 1)), d, keepdim);
  // NaN comes last: the first of them, or the middle.
  const missing = sum(to(isnan(input), "int32"), d, true);
  const at = where(gt(missing, 0), sub(size, missing), middle);
  return dropped(along(input, d, gather(order, d, at)), d, keepdim);
}

/** The median of all elements (the lower of two in the middle); those equal to it share its gradient. */
export function median(input: Tensor): Tensor;
/** The median along a dimension, and where it is. NaN where there is one. */
export function median(input: Tensor, dim: number, keepdim?: boolean): Sorted;
export function median(input: Tensor, dim?: number, keepdim = false): Tensor | Sorted {
  if (dim !== undefined) return medianOver(input, dim, keepdim);
  const all = reshape(input, [input.numel]);
  const value = medianOver(all.detach(), 0, false).values;
  if (!isFloating(input.dtype)) return value;
  const isMedian = logicalOr(eq(all, value), logicalAnd(isnan(all), isnan(value)));
  return amax(where(isMedian, all, -Infinity));
}

export interface SearchOptions {
  /** Behind the elements equal to a value, instead of before them. */
  readonly right?: boolean;
  /** The positions that sort the sequence, where it isn't sorted itself. */
  readonly sorter?: Tensor | null;
}

/**
 * Where values would go into ascending sequences (int32).
 * @param sortedSequence a vector for all values, or [..., N] for values [..., M]
 */
export function searchsorted(
  sortedSequence: Tensor,
  values: Operand,
  { right = false, sorter = null }: SearchOptions = {},
): Tensor {
  const sequence = sorter ? gather(sortedSequence, -1, sorter) : sortedSequence;
  const [rows, wanted] = promoted(sequence, values);
  const isShared = rows.ndim === 1;
  if (
    rows.ndim === 0 ||
    (!isShared && describeShape(rows.shape.slice(0, -1)) !== describeShape(wanted.shape.slice(0, -1)))
  )
    throw new OperatorError(
      "searchsorted",
      `the sequence has shape ${describeShape(rows.shape)} and the values ${describeShape(wanted.shape)}; expected a vector, or equal shapes but for the last dimension`,
    );
  const length = rows.shape.at(-1)!;
  const lines = sizeOf(rows.shape.slice(0, -1));
  const each = isShared ? wanted.numel : wanted.shape.at(-1)!;
  const found = apply(
    searchsortedRow,
    [reshape(rows, [lines, length]), reshape(wanted, [isShared ? 1 : lines, each])],
    { right },
  );
  return reshape(found, wanted.shape);
}

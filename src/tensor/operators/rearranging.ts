import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";

import { describeShape, normalizeDim, normalizeDims, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { copyInto, fillInto } from "./copy";
import { arange } from "./creation";
import { ge, le, where } from "./elementwise";
import { type BufferValue, innerOffset, type Operator } from "./table";
import { cat, expand, narrow, permute, reshape } from "./views";

// Diagonals

/** `offset`: how far right of the main diagonal. The last two dimensions are the matrix's. */
type DiagonalAttributes = { readonly offset: number };

const diagonalLength = (rows: number, columns: number, offset: number): number =>
  Math.max(0, offset >= 0 ? Math.min(rows, columns - offset) : Math.min(rows + offset, columns));

function diagonalOf(matrices: BufferValue, offset: number, shape: Shape): BufferValue {
  const [down, right] = matrices.strides.slice(-2) as [number, number];
  const first = sizeOf(shape) === 0 ? 0 : offset >= 0 ? offset * right : -offset * down;
  return {
    ...matrices,
    shape,
    strides: [...matrices.strides.slice(0, -2), down + right],
    offset: matrices.offset + first,
  };
}

const diagonalRow: Operator<DiagonalAttributes> = {
  name: "diagonal",
  infer([input], { offset }) {
    const [rows, columns] = input!.shape.slice(-2) as [number, number];
    return { shape: [...input!.shape.slice(0, -2), diagonalLength(rows, columns, offset)], dtype: input!.dtype };
  },
  lower(_, { inputs: [input], attributes: { offset }, shape }) {
    return input!.kind === "constant" ? { ...input!, shape } : diagonalOf(input!, offset, shape);
  },
  backward: ({ inputs: [input], gradient, attributes: { offset } }) => [
    apply(diagonalEmbedRow, [gradient], {
      offset,
      rows: input!.shape.at(-2)!,
      columns: input!.shape.at(-1)!,
    }),
  ],
};

type EmbedAttributes = DiagonalAttributes & { readonly rows: number; readonly columns: number };

/** The input on a diagonal of matrices of zeros. */
const diagonalEmbedRow: Operator<EmbedAttributes> = {
  name: "diagonalEmbed",
  infer: ([input], { rows, columns }) => ({
    shape: [...input!.shape.slice(0, -1), rows, columns],
    dtype: input!.dtype,
  }),
  lower(lowering, { inputs: [input], attributes: { offset } }) {
    const out = lowering.result();
    fillInto(lowering, 0, out);
    copyInto(lowering, input!, diagonalOf(out, offset, input!.shape));
    return out;
  },
  backward: ({ gradient, attributes: { offset } }) => [apply(diagonalRow, [gradient], { offset })],
};

// Steps

type StepAttributes = { readonly dim: number; readonly start: number; readonly step: number; readonly length: number };

/** Every `step`-th entry of a dimension. */
const strideRow: Operator<StepAttributes> = {
  name: "stride",
  infer: ([input], { dim, length }) => ({ shape: input!.shape.with(dim, length), dtype: input!.dtype }),
  lower(_, { inputs: [input], attributes, shape }) {
    return input!.kind === "constant" ? { ...input!, shape } : stepsOf(input!, attributes);
  },
  backward: ({ inputs: [input], gradient, attributes }) => [
    apply(strideEmbedRow, [gradient], { ...attributes, size: input!.shape[attributes.dim]! }),
  ],
};

function stepsOf(value: BufferValue, { dim, start, step, length }: StepAttributes): BufferValue {
  const shape = value.shape.with(dim, length);
  const stride = value.strides[dim]!;
  return {
    ...value,
    shape,
    strides: value.strides.with(dim, stride * step),
    offset: value.offset + (sizeOf(shape) === 0 ? 0 : start * stride),
  };
}

/** The input at every `step`-th entry of zeros. */
const strideEmbedRow: Operator<StepAttributes & { readonly size: number }> = {
  name: "strideEmbed",
  infer: ([input], { dim, size }) => ({ shape: input!.shape.with(dim, size), dtype: input!.dtype }),
  lower(lowering, { inputs: [input], attributes }) {
    const out = lowering.result();
    fillInto(lowering, 0, out);
    copyInto(lowering, input!, stepsOf(out, attributes));
    return out;
  },
  backward: ({ gradient, attributes: { dim, start, step, length } }) => [
    apply(strideRow, [gradient], { dim, start, step, length }),
  ],
};

// Padding

type PadAttributes = { readonly before: readonly number[]; readonly after: readonly number[] };

/** Scalars: what fills the space around the input. */
const padRow: Operator<PadAttributes> = {
  name: "constantPadNd",
  infer: ([input], { before, after }) => ({
    shape: input!.shape.map((size, d) => size + before[d]! + after[d]!),
    dtype: input!.dtype,
  }),
  lower(lowering, { inputs: [input], attributes: { before }, scalars, shape, dtype }) {
    const out = lowering.result();
    copyInto(lowering, { kind: "constant", scalar: scalars[0]!, shape, dtype }, out);
    const first = before.reduce((at, count, d) => at + count * out.strides[d]!, 0);
    if (sizeOf(input!.shape) > 0)
      copyInto(lowering, input!, { ...out, shape: input!.shape, offset: out.offset + first });
    return out;
  },
  backward: ({ inputs: [input], gradient, attributes: { before } }) => [
    before.reduce((part, count, d) => narrow(part, d, count, input!.shape[d]!), gradient),
  ],
};

// Reversal

type DimAttributes = { readonly dim: number };

const flipShader = (type: string): Shader => ({
  name: "flip",
  bindings: ["read", "write"],
  code: /* wgsl */ `
struct Uniforms { count: u32, length: u32, inner: u32, offset: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> in_a: array<${type}>;
@group(0) @binding(2) var<storage, read_write> out: array<${type}>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  let at = i / u.inner % u.length;
  out[i] = in_a[u.offset + i + (u.length - 1u - at) * u.inner - at * u.inner];
}`,
});
const flipShaders = { float32: flipShader("f32"), int32: flipShader("i32"), bool: flipShader("u32") };

const flipRow: Operator<DimAttributes> = {
  name: "flip",
  infer: ([input]) => input!,
  lower(lowering, { inputs: [input], attributes: { dim }, shape, dtype }) {
    const out = lowering.result();
    const dense = lowering.dense(lowering.buffer(input!));
    const count = sizeOf(shape);
    lowering.dispatch({
      shader: flipShaders[dtype],
      bindings: [dense, out],
      uniforms: [count, shape[dim]!, sizeOf(shape.slice(dim + 1)), innerOffset(dense)],
      grid: spread(Math.ceil(count / 64)),
      work: count * 4,
    });
    return out;
  },
  backward: ({ gradient, attributes }) => [apply(flipRow, [gradient], attributes)],
};

export const rearranging: readonly Operator[] = [
  diagonalRow,
  diagonalEmbedRow,
  strideRow,
  strideEmbedRow,
  padRow,
  flipRow,
];

/** The diagonal of the matrices in two dimensions, as a last dimension; `offset` counts to the right. */
export function diagonal(input: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  const a = normalizeDim("diagonal", dim1, input.ndim);
  const b = normalizeDim("diagonal", dim2, input.ndim);
  if (a === b || input.ndim < 2)
    throw new OperatorError(
      "diagonal",
      `dim1 is ${dim1} and dim2 ${dim2} of shape ${describeShape(input.shape)}; expected two different dimensions`,
    );
  const rest = input.shape.flatMap((_, d) => (d === a || d === b ? [] : [d]));
  return apply(diagonalRow, [permute(input, [...rest, a, b])], { offset });
}

/** The diagonal of a matrix, or the matrix of zeros with a vector on its diagonal. */
export function diag(input: Tensor, offset = 0): Tensor {
  if (input.ndim === 2) return diagonal(input, offset);
  if (input.ndim !== 1)
    throw new OperatorError("diag", `the input has shape ${describeShape(input.shape)}; expected a vector or a matrix`);
  const size = input.numel + Math.abs(offset);
  return apply(diagonalEmbedRow, [input], { offset, rows: size, columns: size });
}

/** Every `step`-th of `length` entries from `start` on: Python's slice along one dimension. */
export function strided(input: Tensor, dim: number, start: number, length: number, step: number): Tensor {
  if (step === 1) return narrow(input, dim, start, length);
  return apply(strideRow, [input], { dim: normalizeDim("slice", dim, input.ndim), start, step, length });
}

/** The lower triangle of matrices, with zeros above the diagonal that lies `diagonal` to the right of the main one. */
export const tril = (input: Tensor, diagonal = 0): Tensor => triangle("tril", input, diagonal, ge);
/** The upper triangle of matrices. */
export const triu = (input: Tensor, diagonal = 0): Tensor => triangle("triu", input, diagonal, le);

function triangle(name: string, input: Tensor, diagonal: number, keeps: typeof ge): Tensor {
  if (input.ndim < 2)
    throw new OperatorError(name, `the input has shape ${describeShape(input.shape)}; expected at least 2 dimensions`);
  const [rows, columns] = input.shape.slice(-2) as [number, number];
  const lines = reshape(arange(diagonal, rows + diagonal), [rows, 1]);
  return where(keeps(lines, arange(columns)), input, 0);
}

/**
 * Space around the input, filled with `value`.
 * @param pad pairs of sizes before and after, for the last dimension first; negative ones cut off.
 */
export function constantPadNd(input: Tensor, pad: readonly number[], value = 0): Tensor {
  if (pad.length % 2 !== 0 || pad.length > 2 * input.ndim || !pad.every(Number.isInteger))
    throw new OperatorError(
      "constantPadNd",
      `pad is [${pad.join(", ")}]; expected a pair of integers for each of at most ${input.ndim} dimensions`,
    );
  let cut = input;
  const before = input.shape.map((_, d) => pad[2 * (input.ndim - 1 - d)] ?? 0);
  const after = input.shape.map((_, d) => pad[2 * (input.ndim - 1 - d) + 1] ?? 0);
  for (const [d, size] of input.shape.entries()) {
    const [left, right] = [Math.max(0, -before[d]!), Math.max(0, -after[d]!)];
    if (left + right > size)
      throw new OperatorError(
        "constantPadNd",
        `pad is [${pad.join(", ")}], which takes more from dimension ${d} than the ${size} of ${describeShape(input.shape)}`,
      );
    cut = narrow(cut, d, left, size - left - right);
  }
  const positive = (list: readonly number[]) => list.map((count) => Math.max(0, count));
  if (pad.every((count) => count <= 0)) return cut;
  return apply(padRow, [cut], { before: positive(before), after: positive(after) }, [value]);
}

/** The elements in reverse order along some dimensions; none by an empty list. */
export function flip(input: Tensor, dims: number | readonly number[]): Tensor {
  const list = typeof dims === "number" ? [dims] : dims;
  if (list.length === 0) return input;
  return normalizeDims("flip", list, input.ndim).reduce(
    (result, dim) => (input.shape[dim]! > 1 ? apply(flipRow, [result], { dim }) : result),
    input,
  );
}

/** Elements shifted along dimensions; what leaves at the end comes in at the beginning. Without `dims`: as a vector. */
export function roll(
  input: Tensor,
  shifts: number | readonly number[],
  dims: number | readonly number[] | null = null,
): Tensor {
  if (dims === null || (typeof dims !== "number" && dims.length === 0)) {
    return reshape(roll(reshape(input, [input.numel]), shifts, 0), input.shape);
  }
  const by = typeof shifts === "number" ? [shifts] : shifts;
  const along = typeof dims === "number" ? [dims] : dims;
  if (by.length !== along.length)
    throw new OperatorError("roll", `there are ${by.length} shifts and ${along.length} dims; expected as many`);
  return along.reduce((result, dim, i) => {
    const d = normalizeDim("roll", dim, input.ndim);
    const size = input.shape[d] ?? 1;
    const start = size === 0 ? 0 : ((-by[i]! % size) + size) % size;
    if (start === 0) return result;
    return cat([narrow(result, d, start, size - start), narrow(result, d, 0, start)], d);
  }, input);
}

/** The tensor repeated along each dimension; more repeats than dimensions add dimensions in front. */
export function repeat(input: Tensor, repeats: readonly number[]): Tensor {
  if (repeats.length < input.ndim || repeats.some((count) => !Number.isInteger(count) || count < 0))
    throw new OperatorError(
      "repeat",
      `repeats is [${repeats.join(", ")}]; expected a count for each of ${input.ndim} dimensions`,
    );
  const lead = repeats.length - input.ndim;
  const shape = repeats.map((_, d) => (d < lead ? 1 : input.shape[d - lead]!));
  const apart = reshape(
    input,
    shape.flatMap((size) => [1, size]),
  );
  return reshape(
    expand(
      apart,
      shape.flatMap((size, d) => [repeats[d]!, size]),
    ),
    shape.map((size, d) => size * repeats[d]!),
  );
}

/** Like repeat, but fewer counts than dimensions are for the last ones. */
export function tile(input: Tensor, dims: readonly number[]): Tensor {
  const lead = Math.max(0, input.ndim - dims.length);
  return repeat(input, [...new Array<number>(lead).fill(1), ...dims]);
}

/** Parts along a dimension: of one size (the last may be smaller), or of the sizes given. */
export function split(input: Tensor, sizes: number | readonly number[], dim = 0): Tensor[] {
  const d = normalizeDim("split", dim, input.ndim);
  const total = input.shape[d];
  if (total === undefined) throw new OperatorError("split", "the input is a scalar; expected at least one dimension");
  const list = typeof sizes === "number" ? evenSizes(total, sizes) : sizes;
  if (list.some((size) => !Number.isInteger(size) || size < 0) || list.reduce((a, b) => a + b, 0) !== total)
    throw new OperatorError(
      "split",
      `the sizes are [${list.join(", ")}]; expected integers that add up to ${total}, the size of dimension ${dim}`,
    );
  let start = 0;
  return list.map((size) => {
    start += size;
    return narrow(input, d, start - size, size);
  });
}

function evenSizes(total: number, size: number): number[] {
  if (!Number.isInteger(size) || size < 0 || (size === 0 && total > 0))
    throw new OperatorError("split", `the size is ${size}; expected an integer of at least 1`);
  const parts = Math.max(1, Math.ceil(total / Math.max(1, size)));
  return Array.from({ length: parts }, (_, i) => Math.min(size, total - i * size));
}

export const splitWithSizes = (input: Tensor, sizes: readonly number[], dim = 0): Tensor[] => split(input, sizes, dim);

/** At most `chunks` parts of equal size along a dimension; the last may be smaller. */
export function chunk(input: Tensor, chunks: number, dim = 0): Tensor[] {
  if (!Number.isInteger(chunks) || chunks < 1)
    throw new OperatorError("chunk", `chunks is ${chunks}; expected an integer of at least 1`);
  const size = input.shape[normalizeDim("chunk", dim, input.ndim)] ?? 0;
  // Nothing still comes in as many parts as were asked for.
  return split(input, size === 0 ? new Array<number>(chunks).fill(0) : Math.ceil(size / chunks), dim);
}

/** Every entry of a dimension, without that dimension. */
export function unbind(input: Tensor, dim = 0): Tensor[] {
  const d = normalizeDim("unbind", dim, input.ndim);
  const size = input.shape[d];
  if (size === undefined) throw new OperatorError("unbind", "the input is a scalar; expected at least one dimension");
  return Array.from({ length: size }, (_, i) => reshape(narrow(input, d, i, 1), input.shape.toSpliced(d, 1)));
}

/** A dimension as several, whose sizes have its product; one may be -1. */
export function unflatten(input: Tensor, dim: number, sizes: readonly number[]): Tensor {
  const d = normalizeDim("unflatten", dim, input.ndim);
  const size = input.shape[d] ?? 1;
  const known = sizes.reduce((product, of) => (of === -1 ? product : product * of), 1);
  const resolved = sizes.map((of) => (of === -1 ? size / known : of));
  if (sizeOf(resolved) !== size || !resolved.every((of) => Number.isInteger(of) && of >= 0))
    throw new OperatorError(
      "unflatten",
      `the sizes are [${sizes.join(", ")}]; expected ones with the product ${size}, the size of dimension ${dim}`,
    );
  return reshape(input, input.shape.toSpliced(d, 1, ...resolved));
}

/** Dimensions at other places; the rest keep their order. */
export function movedim(
  input: Tensor,
  source: number | readonly number[],
  destination: number | readonly number[],
): Tensor {
  const list = (dims: number | readonly number[]) =>
    (typeof dims === "number" ? [dims] : dims).map((dim) => normalizeDim("movedim", dim, input.ndim));
  const [from, to] = [list(source), list(destination)];
  if (from.length !== to.length || new Set(from).size < from.length || new Set(to).size < to.length)
    throw new OperatorError(
      "movedim",
      `source is [${from}] and destination [${to}]; expected as many dimensions, each once`,
    );
  const rest = input.shape.flatMap((_, d) => (from.includes(d) ? [] : [d]));
  const order = input.shape.map((_, d) => (to.includes(d) ? from[to.indexOf(d)]! : rest.shift()!));
  return permute(input, order);
}

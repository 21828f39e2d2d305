import { apply } from "../apply";
import { promoteTypes } from "../dtype";
import { contiguousStrides, describeShape, normalizeDim, OperatorError, type Shape, sameShape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { copyInto, fillInto } from "./copy";
import { to } from "./elementwise";
import { sum } from "./reduction";
import type { BufferValue, Operator, Value } from "./table";

type ShapeAttributes = { readonly shape: Shape };

const reshapeRow: Operator<ShapeAttributes> = {
  name: "reshape",
  takesNarrow: true,
  isView: true,
  infer: ([input], { shape }) => ({ shape, dtype: input!.dtype }),
  lower(lowering, { inputs: [input], shape }) {
    if (input!.kind === "constant") return { ...input!, shape };
    const strides = reshapedStrides(input!, shape);
    if (strides) return { ...input!, shape, strides };
    const dense = lowering.dense(input!);
    return { ...dense, shape, strides: contiguousStrides(shape) };
  },
  backward: ({ inputs: [input], gradient }) => [reshape(gradient, input!.shape)],
};

/** The strides of a view in a new shape, or null where the elements aren't evenly spaced in it. */
function reshapedStrides({ shape, strides }: BufferValue, target: Shape): number[] | null {
  if (sizeOf(shape) === 0) return contiguousStrides(target);
  const from = shape.flatMap((size, d) => (size === 1 ? [] : [{ size, stride: strides[d]! }]));
  const result = new Array<number>(target.length).fill(0);
  let at = from.length - 1;
  let left = 1;
  let stride = 1;
  for (let d = target.length - 1; d >= 0; d--) {
    const size = target[d]!;
    if (size === 1) continue;
    if (left === 1) {
      if (at < 0) return null;
      ({ size: left, stride } = from[at--]!);
    }
    while (left % size !== 0) {
      const outer = from[at--];
      if (!outer || outer.stride !== stride * left) return null;
      left *= outer.size;
    }
    result[d] = stride;
    stride *= size;
    left /= size;
  }
  return result;
}

type PermuteAttributes = { readonly dims: readonly number[] };

const permuteRow: Operator<PermuteAttributes> = {
  name: "permute",
  takesNarrow: true,
  isView: true,
  infer: ([input], { dims }) => ({ shape: dims.map((d) => input!.shape[d]!), dtype: input!.dtype }),
  lower(_, { inputs: [input], attributes: { dims }, shape }) {
    if (input!.kind === "constant") return { ...input!, shape };
    const { strides } = input!;
    return { ...input!, shape, strides: dims.map((d) => strides[d]!) };
  },
  backward: ({ gradient, attributes: { dims } }) => [
    permute(
      gradient,
      dims.map((_, d) => dims.indexOf(d)),
    ),
  ],
};

const expandRow: Operator<ShapeAttributes> = {
  name: "expand",
  takesNarrow: true,
  isView: true,
  infer: ([input], { shape }) => ({ shape, dtype: input!.dtype }),
  lower(_, { inputs: [input], shape }) {
    if (input!.kind === "constant") return { ...input!, shape };
    const { shape: from, strides } = input!;
    const lead = shape.length - from.length;
    return {
      ...input!,
      shape,
      strides: shape.map((size, d) => (d < lead || from[d - lead] !== size ? 0 : strides[d - lead]!)),
    };
  },
  backward: ({ inputs: [input], gradient }) => [sumTo(gradient, input!.shape)],
};

type NarrowAttributes = { readonly dim: number; readonly start: number; readonly length: number };

const narrowRow: Operator<NarrowAttributes> = {
  name: "narrow",
  takesNarrow: true,
  infer: ([input], { dim, length }) => ({ shape: input!.shape.with(dim, length), dtype: input!.dtype }),
  lower(_, { inputs: [input], attributes: { dim, start }, shape }) {
    if (input!.kind === "constant") return { ...input!, shape };
    return { ...input!, shape, offset: input!.offset + (sizeOf(shape) === 0 ? 0 : start * input!.strides[dim]!) };
  },
  backward: ({ inputs: [input], gradient, attributes: { dim, start } }) => [
    apply(embedRow, [gradient], { dim, start, size: input!.shape[dim]! }),
  ],
};

type EmbedAttributes = { readonly dim: number; readonly start: number; readonly size: number };

/** Narrow's transpose: the input at its place in zeros. */
const embedRow: Operator<EmbedAttributes> = {
  name: "embed",
  takesNarrow: true,
  infer: ([input], { dim, size }) => ({ shape: input!.shape.with(dim, size), dtype: input!.dtype }),
  lower(lowering, { inputs: [input], attributes: { dim, start, size } }) {
    const out = lowering.result();
    const end = start + input!.shape[dim]!;
    for (const [from, to] of [
      [0, start],
      [end, size],
    ] as const)
      if (to > from) fillInto(lowering, 0, partOf(out, dim, from, to - from));
    copyInto(lowering, input!, partOf(out, dim, start, end - start));
    return out;
  },
  backward: ({ inputs: [input], gradient, attributes: { dim, start } }) => [
    narrow(gradient, dim, start, input!.shape[dim]!),
  ],
};

function partOf(value: BufferValue, dim: number, start: number, length: number): BufferValue {
  return { ...value, shape: value.shape.with(dim, length), offset: value.offset + start * value.strides[dim]! };
}

type DimAttributes = { readonly dim: number };

const catRow: Operator<DimAttributes> = {
  name: "cat",
  takesNarrow: true,
  infer(inputs, { dim }) {
    const first = inputs[0]!;
    for (const [i, { shape }] of inputs.entries())
      if (!sameShape(shape.with(dim, 0), first.shape.with(dim, 0)))
        throw new OperatorError(
          "cat",
          `tensor ${i} has shape ${describeShape(shape)} and tensor 0 ${describeShape(first.shape)}; ` +
            `expected equal sizes except in dimension ${dim}`,
        );
    const total = inputs.reduce((size, { shape }) => size + shape[dim]!, 0);
    return { shape: first.shape.with(dim, total), dtype: first.dtype };
  },
  lower(lowering, { inputs, attributes: { dim } }) {
    const out = lowering.result();
    let start = 0;
    for (const input of inputs) {
      const length = input.shape[dim]!;
      copyInto(lowering, input, partOf(out, dim, start, length));
      start += length;
    }
    return out;
  },
  backward({ inputs, gradient, attributes: { dim }, needs }) {
    let start = 0;
    return inputs.map(({ shape }, i) => {
      const from = start;
      start += shape[dim]!;
      return needs[i] ? narrow(gradient, dim, from, shape[dim]!) : null;
    });
  },
};

const contiguousRow: Operator = {
  name: "contiguous",
  takesNarrow: true,
  infer: ([input]) => input!,
  lower: (lowering, { inputs: [input] }): Value => lowering.dense(input!),
  backward: ({ gradient }) => [gradient],
};

export const views: readonly Operator[] = [
  reshapeRow,
  permuteRow,
  expandRow,
  narrowRow,
  embedRow,
  catRow,
  contiguousRow,
];

/** The same elements in another shape; one size may be -1, to be computed. Copies only where a view can't do. */
export function reshape(input: Tensor, shape: Shape): Tensor {
  const known = shape.reduce((product, size) => (size === -1 ? product : product * size), 1);
  const free = shape.indexOf(-1);
  const resolved = free < 0 ? [...shape] : shape.with(free, known === 0 ? 0 : input.numel / known);
  if (sizeOf(resolved) !== input.numel || resolved.some((size) => !Number.isInteger(size) || size < 0))
    throw new OperatorError(
      "reshape",
      `the shape is ${describeShape(shape)} and the input's ${describeShape(input.shape)}; expected one with ${input.numel} elements`,
    );
  return sameShape(resolved, input.shape) ? input : apply(reshapeRow, [input], { shape: resolved });
}

export const view = reshape;

export function flatten(input: Tensor, startDim = 0, endDim = -1): Tensor {
  const start = normalizeDim("flatten", startDim, input.ndim);
  const end = normalizeDim("flatten", endDim, input.ndim);
  if (end < start)
    throw new OperatorError("flatten", `startDim is ${startDim} and endDim ${endDim}; expected start before end`);
  const { shape } = input;
  return reshape(input, [...shape.slice(0, start), sizeOf(shape.slice(start, end + 1)), ...shape.slice(end + 1)]);
}

export function unsqueeze(input: Tensor, dim: number): Tensor {
  const at = normalizeDim("unsqueeze", dim, input.ndim + 1);
  return reshape(input, input.shape.toSpliced(at, 0, 1));
}

/** Without its dimensions of size 1, or without `dim` if that has size 1. */
export function squeeze(input: Tensor, dim?: number): Tensor {
  const only = dim === undefined ? null : normalizeDim("squeeze", dim, input.ndim);
  return reshape(
    input,
    input.shape.filter((size, d) => size !== 1 || (only !== null && d !== only)),
  );
}

export function permute(input: Tensor, dims: readonly number[]): Tensor {
  const order = dims.map((dim) => normalizeDim("permute", dim, input.ndim));
  if (order.length !== input.ndim || new Set(order).size !== order.length)
    throw new OperatorError("permute", `dims is [${dims.join(", ")}]; expected each of ${input.ndim} dimensions once`);
  return order.every((d, i) => d === i) ? input : apply(permuteRow, [input], { dims: order });
}

export function transpose(input: Tensor, dim0: number, dim1: number): Tensor {
  const a = normalizeDim("transpose", dim0, input.ndim);
  const b = normalizeDim("transpose", dim1, input.ndim);
  if (input.ndim === 0) return input;
  const order = input.shape.map((_, d) => (d === a ? b : d === b ? a : d));
  return permute(input, order);
}

/** The transpose of a matrix; a vector or scalar as it is. */
export function t(input: Tensor): Tensor {
  if (input.ndim > 2)
    throw new OperatorError("t", `the input has shape ${describeShape(input.shape)}; expected at most 2 dimensions`);
  return input.ndim < 2 ? input : transpose(input, 0, 1);
}

/** Repeats dimensions of size 1 without copying; -1 keeps a size. */
export function expand(input: Tensor, shape: Shape): Tensor {
  const lead = shape.length - input.ndim;
  const resolved = shape.map((size, d) => (size === -1 && d >= lead ? input.shape[d - lead]! : size));
  if (lead < 0 || input.shape.some((size, d) => size !== 1 && size !== resolved[d + lead]))
    throw new OperatorError(
      "expand",
      `the shape is ${describeShape(shape)} and the input's ${describeShape(input.shape)}; expected one that broadcasting gives`,
    );
  return sameShape(resolved, input.shape) ? input : apply(expandRow, [input], { shape: resolved });
}

export const broadcastTo = expand;

/** The sum over what broadcasting repeated: expand's transpose. */
export function sumTo(input: Tensor, shape: Shape): Tensor {
  if (sameShape(input.shape, shape)) return input;
  const lead = input.ndim - shape.length;
  const dims = input.shape.flatMap((size, d) => (d < lead || shape[d - lead] !== size ? [d] : []));
  return reshape(dims.length > 0 ? sum(input, dims, true) : input, shape);
}

/** `length` entries of a dimension from `start` on. */
export function narrow(input: Tensor, dim: number, start: number, length: number): Tensor {
  const d = normalizeDim("narrow", dim, input.ndim);
  const size = input.shape[d] ?? 1;
  const from = start < 0 ? start + size : start;
  if (!Number.isInteger(from) || !Number.isInteger(length) || from < 0 || length < 0 || from + length > size)
    throw new OperatorError(
      "narrow",
      `start is ${start} and length ${length}; expected a part of dimension ${dim}, which has ${size} entries`,
    );
  return from === 0 && length === size ? input : apply(narrowRow, [input], { dim: d, start: from, length });
}

/** One entry of a dimension, without that dimension. */
export function select(input: Tensor, dim: number, index: number): Tensor {
  const d = normalizeDim("select", dim, input.ndim);
  const size = input.shape[d];
  if (size === undefined || !Number.isInteger(index) || index < -size || index >= size)
    throw new OperatorError(
      "select",
      `index is ${index}; expected an integer within dimension ${dim} of shape ${describeShape(input.shape)}`,
    );
  return reshape(narrow(input, d, index < 0 ? index + size : index, 1), input.shape.toSpliced(d, 1));
}

/** Joins tensors along a dimension; types that differ are promoted. Empty vectors go with anything, as in PyTorch. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  const isEmptyVector = ({ shape }: Tensor) => shape.length === 1 && shape[0] === 0;
  const first = tensors.find((tensor) => !isEmptyVector(tensor)) ?? tensors[0];
  if (!first) throw new OperatorError("cat", "the list of tensors is empty; expected at least one");
  if (first.ndim === 0) throw new OperatorError("cat", "tensor 0 is a scalar; expected at least one dimension");
  const d = normalizeDim("cat", dim, first.ndim);
  const joined = tensors.map((tensor) => (isEmptyVector(tensor) ? reshape(tensor, first.shape.with(d, 0)) : tensor));
  const dtype = tensors.map((tensor) => tensor.dtype).reduce(promoteTypes);
  return apply(
    catRow,
    joined.map((tensor) => to(tensor, dtype)),
    { dim: d },
  );
}

/** Joins tensors of one shape along a new dimension. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  return cat(
    tensors.map((tensor) => unsqueeze(tensor, dim)),
    dim,
  );
}

/** Lays the elements out in row-major order, so that kernels after it walk them evenly. */
export const contiguous = (input: Tensor): Tensor => apply(contiguousRow, [input], {});

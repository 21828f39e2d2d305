import { broadcastShapes, describeShape, OperatorError, sizeOf } from "../shape";
import { Tensor, tensor } from "../tensor";
import { add, ge, logicalAnd, lt, mul, where } from "./elementwise";
import { indexSelect } from "./indexing";
import { strided } from "./rearranging";
import { expand, permute, reshape, select, unsqueeze } from "./views";

/** Python's `start:stop:step`. Negative bounds count from the end, and bounds outside are cut; the step is at least 1. */
export interface Slice {
  readonly start?: number | null;
  readonly stop?: number | null;
  readonly step?: number | null;
}

/**
 * What may stand in PyTorch's `tensor[...]`: an entry's number, a slice, "..." for as many whole dimensions as are left,
 * null for a new dimension of size 1, or indices: numbers or a tensor (int32), which broadcast with each other.
 */
export type Index = number | Slice | "..." | null | readonly number[] | Tensor;

export const slice = (start: number | null = null, stop: number | null = null, step: number | null = null): Slice => ({
  start,
  stop,
  step,
});

/** PyTorch's `input[indices]`. Numbers and slices give views; several lists of indices pick elements together. */
export function index(input: Tensor, ...indices: readonly Index[]): Tensor {
  let result = input;
  let dim = 0;
  const advanced: { readonly dim: number; readonly positions: Tensor | readonly number[] }[] = [];
  for (const item of spelledOut(input, indices)) {
    if (item === null) result = unsqueeze(result, dim++);
    else if (typeof item === "number") result = select(result, dim, item);
    else if (item instanceof Tensor || isList(item)) advanced.push({ dim: dim++, positions: item });
    else result = sliced(result, dim++, item);
  }
  return advanced.length === 0 ? result : picked(result, advanced);
}

const isList = (item: Slice | readonly number[]): item is readonly number[] => Array.isArray(item);

/** The indices with a slice for each dimension that an ellipsis stands for. */
function spelledOut(input: Tensor, indices: readonly Index[]): Exclude<Index, "...">[] {
  const used = indices.filter((item) => item !== null && item !== "...").length;
  const ellipses = indices.filter((item) => item === "...").length;
  if (used > input.ndim || ellipses > 1)
    throw new OperatorError(
      "index",
      `there are ${used} indices and ${ellipses} ellipses for shape ${describeShape(input.shape)}; expected at most ${input.ndim}, and one ellipsis`,
    );
  return indices.flatMap((item) =>
    item === "..." ? Array.from({ length: input.ndim - used }, (): Slice => ({})) : [item],
  );
}

function sliced(input: Tensor, dim: number, { start, stop, step }: Slice): Tensor {
  const size = input.shape[dim]!;
  const by = step ?? 1;
  if (![start ?? 0, stop ?? 0, by].every(Number.isInteger) || by < 1)
    throw new OperatorError(
      "index",
      `the slice is ${start ?? ""}:${stop ?? ""}:${step ?? ""}; expected integers, and a step of at least 1`,
    );
  const bound = (at: number) => Math.min(Math.max(at < 0 ? at + size : at, 0), size);
  const from = bound(start ?? 0);
  const length = Math.max(0, Math.ceil((bound(stop ?? size) - from) / by));
  return strided(input, dim, length === 0 ? 0 : from, length, by);
}

/** Picks by lists of indices of several dimensions together: by one list of positions among all their elements. */
function picked(
  input: Tensor,
  advanced: readonly { readonly dim: number; readonly positions: Tensor | readonly number[] }[],
): Tensor {
  const dims = advanced.map(({ dim }) => dim);
  const sizes = dims.map((dim) => input.shape[dim]!);
  const lists = advanced.map(({ positions }, i) => positionsOf(positions, sizes[i]!, dims[i]!));
  const shape = broadcastShapes(...lists.map((list) => list.shape));
  if (!shape)
    throw new OperatorError(
      "index",
      `the lists of indices have shapes ${lists.map((list) => describeShape(list.shape)).join(", ")}; expected ones that broadcast`,
    );
  const rest = input.shape.flatMap((_, d) => (dims.includes(d) ? [] : [d]));
  const restShape = rest.map((d) => input.shape[d]!);
  const rows = reshape(permute(input, [...dims, ...rest]), [sizeOf(sizes), ...restShape]);
  const at = reshape(expand(joined(lists, sizes), shape), [sizeOf(shape)]);
  const result = reshape(indexSelect(rows, 0, at), [...shape, ...restShape]);
  // What was picked stands where its dimensions were, if they were neighbours, and in front otherwise.
  const isTogether = dims.every((dim, i) => i === 0 || dim === dims[i - 1]! + 1);
  if (!isTogether) return result;
  const before = rest.filter((d) => d < dims[0]!).length;
  const order = rest.map((_, i) => shape.length + i);
  return permute(result, [...order.slice(0, before), ...shape.map((_, d) => d), ...order.slice(before)]);
}

/** Indices of one dimension, counted from its beginning. */
function positionsOf(positions: Tensor | readonly number[], size: number, dim: number): Tensor {
  if (positions instanceof Tensor) {
    if (positions.dtype !== "int32")
      throw new OperatorError(
        "index",
        `the index of dimension ${dim} is ${positions}; expected int32, or indexAsync for a mask`,
      );
    return where(lt(positions, 0), add(positions, size), positions);
  }
  const counted = positions.map((position) => {
    if (!Number.isInteger(position) || position < -size || position >= size)
      throw new OperatorError(
        "index",
        `there is an index ${position} of dimension ${dim}; expected integers from ${-size} to ${size - 1}`,
      );
    return position < 0 ? position + size : position;
  });
  return tensor(Int32Array.from(counted));
}

/** The row-major position among dimensions of `sizes`; -1 where one of several indices is out of range. */
function joined(lists: readonly Tensor[], sizes: readonly number[]): Tensor {
  if (lists.length === 1) return lists[0]!;
  const inRange = lists.map((list, i) => logicalAnd(ge(list, 0), lt(list, sizes[i]!)));
  const at = lists.reduce((total, list, i) => add(mul(total, sizes[i]!), list));
  return where(inRange.reduce(logicalAnd), at, -1);
}

import { broadcastShapes, describeShape, normalizeDim, OperatorError, sizeOf } from "../shape";
import { Tensor } from "../tensor";
import { arange, zeros } from "./creation";
import { cumsum } from "./cumulative";
import { ne, sub, to } from "./elementwise";
import { type Index, index } from "./getItem";
import { indexSelect } from "./indexing";
import { unbind } from "./rearranging";
import { floorDivide, remainder } from "./rounding";
import { searchsorted } from "./sorting";
import { any } from "./statistics";
import { cat, expand, narrow, reshape, stack, unsqueeze } from "./views";

// Results whose shape depends on values. They are promises: the values are read first, which is a flush, and the input
// survives it.

/** The elements where a mask, which broadcasts with the input, holds: a vector in row-major order. */
export async function maskedSelect(input: Tensor, mask: Tensor): Promise<Tensor> {
  const shape = broadcastShapes(input.shape, mask.shape);
  if (mask.dtype !== "bool" || !shape)
    throw new OperatorError(
      "maskedSelect",
      `the mask is ${mask} and the input has shape ${describeShape(input.shape)}; expected bool, of a shape that broadcasts with it`,
    );
  input.keep();
  const chosen = to(reshape(expand(mask, shape), [-1]), "int32");
  const positions = await positionsOf(chosen);
  return indexSelect(reshape(expand(input, shape), [-1]), 0, positions);
}

/** Where a vector of counts has its entries: each position as often as it says. */
async function positionsOf(counts: Tensor): Promise<Tensor> {
  if (counts.numel === 0) return zeros([0], { dtype: "int32" });
  const sums = cumsum(counts, 0).keep();
  const total = await reshape(narrow(sums, 0, counts.numel - 1, 1), []).item();
  return searchsorted(sums, arange(total), { right: true });
}

/** The places of elements that aren't 0: [count, dimensions] of int32, in row-major order. */
export async function nonzero(input: Tensor): Promise<Tensor> {
  const { shape } = input;
  const at = await positionsOf(to(to(reshape(input, [input.numel]), "bool"), "int32"));
  if (shape.length === 0) return reshape(at, [at.numel, 0]);
  const places = shape.map((size, d) => {
    const inner = sizeOf(shape.slice(d + 1));
    return remainder(floorDivide(at, inner), size);
  });
  return stack(places, 1);
}

/** Like `index`, where a mask (bool) may also stand for as many dimensions as it has: it picks where it holds. */
export async function indexAsync(input: Tensor, ...indices: readonly Index[]): Promise<Tensor> {
  input.keep();
  const places = new Map<Index, Tensor>();
  for (const item of indices) {
    if (!(item instanceof Tensor) || item.dtype !== "bool") continue;
    if (item.ndim === 0) throw new OperatorError("indexAsync", "a mask is a scalar; expected at least one dimension");
    item.keep();
    places.set(item, (await nonzero(item)).keep());
  }
  const spelled = indices.flatMap((item) => {
    const found = places.get(item);
    return found ? unbind(found, 1) : [item];
  });
  return index(input, ...spelled);
}

export interface Unique {
  /** The first of each run of equal elements. */
  readonly output: Tensor;
  /** For each element, which of `output` it is (int32). */
  readonly inverse: Tensor;
  /** How long each run is (int32). */
  readonly counts: Tensor;
}

/** Without repetitions of what came just before: of elements in row-major order, or of entries along `dim`. */
export async function uniqueConsecutive(input: Tensor, dim: number | null = null): Promise<Unique> {
  const values = dim === null || input.ndim === 0 ? reshape(input, [input.numel]) : input;
  const d = dim === null ? 0 : normalizeDim("uniqueConsecutive", dim, values.ndim);
  const length = values.shape[d]!;
  const shape = dim === null ? input.shape : [length];
  if (length === 0) {
    const none = zeros([0], { dtype: "int32" });
    return { output: values, inverse: reshape(none, shape), counts: none };
  }
  values.keep();
  const differs = ne(narrow(values, d, 1, length - 1), narrow(values, d, 0, length - 1));
  const others = values.shape.flatMap((_, i) => (i === d ? [] : [i]));
  const begins = others.length > 0 ? any(differs, others) : differs;
  const run = cumsum(cat([zeros([1], { dtype: "int32" }), to(begins, "int32")], 0), 0).keep();
  const runs = (await reshape(narrow(run, 0, length - 1, 1), []).item()) + 1;
  const starts = searchsorted(run, arange(runs + 1));
  return {
    output: indexSelect(values, d, narrow(starts, 0, 0, runs)),
    inverse: reshape(run, shape),
    counts: sub(narrow(starts, 0, 1, runs), narrow(starts, 0, 0, runs)),
  };
}

/**
 * Each entry of a dimension several times in a row; without `dim`, of the elements in row-major order.
 * @param repeats how often: one number for all, or a tensor (int32) with one for each, which makes the result a promise.
 */
export function repeatInterleave(input: Tensor, repeats: number, dim?: number | null): Tensor;
export function repeatInterleave(input: Tensor, repeats: Tensor, dim?: number | null): Promise<Tensor>;
export function repeatInterleave(
  input: Tensor,
  repeats: number | Tensor,
  dim: number | null = null,
): Tensor | Promise<Tensor> {
  const values = dim === null || input.ndim === 0 ? reshape(input, [input.numel]) : input;
  const d = dim === null ? 0 : normalizeDim("repeatInterleave", dim, values.ndim);
  const length = values.shape[d]!;
  if (repeats instanceof Tensor) {
    if (repeats.dtype !== "int32" || repeats.ndim > 1 || (repeats.numel !== length && repeats.numel !== 1))
      throw new OperatorError(
        "repeatInterleave",
        `repeats is ${repeats}; expected int32 with a count for each of ${length} entries`,
      );
    values.keep();
    return positionsOf(expand(reshape(repeats, [repeats.numel]), [length])).then((positions) =>
      indexSelect(values, d, positions),
    );
  }
  if (!Number.isInteger(repeats) || repeats < 0)
    throw new OperatorError("repeatInterleave", `repeats is ${repeats}; expected an integer of at least 0`);
  const apart = unsqueeze(values, d + 1);
  return reshape(expand(apart, apart.shape.with(d + 1, repeats)), values.shape.with(d, length * repeats));
}

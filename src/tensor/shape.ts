/** The size of each dimension, outermost first; [] is a scalar. */
export type Shape = readonly number[];

export const sizeOf = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);

/** Elements to step over for each dimension of a row-major tensor. */
export function contiguousStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d]!;
  }
  return strides;
}

export const sameShape = (a: Shape, b: Shape): boolean => a.length === b.length && a.every((size, d) => size === b[d]);

export const describeShape = (shape: Shape): string => `[${shape.join(", ")}]`;

/** The shape that broadcasting gives, or null where the shapes don't go together. */
export function broadcastShapes(...shapes: readonly Shape[]): number[] | null {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  const result = new Array<number>(rank).fill(1);
  for (const shape of shapes)
    for (let d = 0; d < shape.length; d++) {
      const at = rank - shape.length + d;
      const size = shape[d]!;
      if (size === 1 || size === result[at]) continue;
      if (result[at] !== 1) return null;
      result[at] = size;
    }
  return result;
}

/** A dimension counted from the front. A scalar takes 0 and -1, as in PyTorch. */
export function normalizeDim(operator: string, dim: number, rank: number): number {
  const range = Math.max(rank, 1);
  if (!Number.isInteger(dim) || dim < -range || dim >= range)
    throw new OperatorError(operator, `dim is ${dim}; expected an integer from ${-range} to ${range - 1}`);
  return dim < 0 ? dim + range : dim;
}

/** Dimensions counted from the front, in ascending order; all of them for null, undefined or an empty list. */
export function normalizeDims(
  operator: string,
  dims: number | readonly number[] | null | undefined,
  rank: number,
): number[] {
  const list = typeof dims === "number" ? [dims] : (dims ?? []);
  if (list.length === 0) return Array.from({ length: rank }, (_, d) => d);
  const normalized = list.map((dim) => normalizeDim(operator, dim, rank));
  if (new Set(normalized).size < normalized.length)
    throw new OperatorError(operator, `dim is [${list.join(", ")}]; expected each dimension once`);
  return rank === 0 ? [] : normalized.sort((a, b) => a - b);
}

/** A call that an operator can't accept: names the operator, the argument, what it got and what it expected. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";

  constructor(
    readonly operator: string,
    problem: string,
  ) {
    super(`${operator}: ${problem}.`);
  }
}

import { expect } from "vitest";

/** A tensor of the reference as it stands in the JSON files (tests/reference/README.md). */
export interface ReferenceTensor {
  readonly shape: readonly number[];
  readonly dtype: "float32" | "int64" | "int32" | "uint8" | "bool";
  /** Base64 of little-endian values; int64 is stored as int32. */
  readonly data: string;
}

/** A call's argument: JSON, in which `{"$tensor": i}` and the like stand for what JSON lacks. */
export type ReferenceArgument =
  | null
  | boolean
  | number
  | string
  | readonly ReferenceArgument[]
  | { readonly $tensor: number }
  | { readonly $float: string }
  | { readonly $slice: readonly (number | null)[] }
  | { readonly $ellipsis: true }
  | { readonly $dtype: string };

/** One call of one operator, with PyTorch's outputs and gradients. Records are keyed by an index as text. */
export interface ReferenceCase {
  readonly id: string;
  readonly args: readonly ReferenceArgument[];
  readonly kwargs: Readonly<Record<string, ReferenceArgument>>;
  readonly tensors: readonly ReferenceTensor[];
  readonly outputs: readonly ReferenceTensor[];
  /** The gradient that flows into an output. */
  readonly cotangents?: Readonly<Record<string, ReferenceTensor>>;
  /** The gradient that PyTorch computed for a tensor. */
  readonly gradients?: Readonly<Record<string, ReferenceTensor | null>>;
}

export interface ReferenceFile {
  readonly op: string;
  readonly cases: readonly ReferenceCase[];
}

/** The tensor's values in row-major order; booleans as 0 and 1. */
export function decode(tensor: ReferenceTensor): Float32Array | Int32Array {
  const bytes = Uint8Array.from(atob(tensor.data), (character) => character.charCodeAt(0));
  switch (tensor.dtype) {
    case "float32":
      return new Float32Array(bytes.buffer);
    case "int64":
    case "int32":
      return new Int32Array(bytes.buffer);
    case "uint8":
    case "bool":
      return Int32Array.from(bytes);
  }
}

export interface Tolerance {
  readonly relative: number;
  readonly absolute: number;
}

/** The bounds that the reference asks for. */
export const referenceTolerance: Tolerance = { relative: 1e-4, absolute: 1e-5 };

/** Asserts the shape, and each value within |expected| * relative + absolute; NaN equals NaN, infinity itself. */
export function expectClose(
  what: string,
  shape: readonly number[],
  actual: ArrayLike<number>,
  expected: ReferenceTensor,
  { relative, absolute }: Tolerance = referenceTolerance,
): void {
  expect(shape, `${what}'s shape`).toEqual(expected.shape);
  const values = decode(expected);
  expect(actual.length, `${what}'s number of values`).toBe(values.length);
  let wrong = 0;
  let worst = { error: -1, at: 0 };
  for (let i = 0; i < values.length; i++) {
    const [got, want] = [Number(actual[i]), values[i]!];
    if (Object.is(got, want) || got === want) continue;
    const error = Math.abs(got - want);
    if (error <= absolute + relative * Math.abs(want)) continue;
    wrong += 1;
    // NaN, where it isn't expected, is the largest error of all.
    if (worst.error < 0 || !(error <= worst.error)) worst = { error, at: i };
  }
  if (wrong === 0) return;
  const { error, at } = worst;
  expect.fail(
    `${what}, ${expected.dtype}[${shape.join(", ")}], has ${wrong} of ${values.length} values too far from PyTorch's. ` +
      `The largest error is ${error}, at ${at}: ${actual[at]}, where PyTorch has ${values[at]}; ` +
      `${absolute + relative * Math.abs(values[at]!)} is allowed`,
  );
}

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
  for (let i = 0; i < values.length; i++) {
    const want = values[i]!;
    const got = Number(actual[i]);
    const bound = absolute + relative * Math.abs(want);
    if (!(Object.is(got, want) || got === want || Math.abs(got - want) <= bound))
      expect.fail(`${what} has ${got} at ${i}; PyTorch has ${want}, from which ${bound} is allowed`);
  }
}

import { fromBrain, fromHalf, toBrain, toHalf } from "../base/float16";

/**
 * Element types, by PyTorch's names. On the GPU a bool is a u32 that is 0 or 1, and a narrow float takes 2 bytes; all
 * others take 4.
 */
export type DType = "float32" | "float16" | "bfloat16" | "int32" | "bool";

/** Types that are only stored: kernels compute on them, and accumulate, in float32. */
export type NarrowType = "float16" | "bfloat16";

/** Types that kernels compute in. */
export type ComputeType = Exclude<DType, NarrowType>;

export type TypedArray = Float32Array | Int32Array | Uint8Array;

/** What the GPU's memory holds, in words of 4 bytes. */
export type Words = Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

/** The bytes of a word of memory, and of an element that is not narrow. */
export const bytesPerElement = 4;

export const isNarrow = (dtype: DType): dtype is NarrowType => dtype === "float16" || dtype === "bfloat16";

export const isFloating = (dtype: DType): boolean => dtype === "float32" || isNarrow(dtype);

export const bytesOf = (dtype: DType): number => (isNarrow(dtype) ? 2 : bytesPerElement);

/** The type that kernels compute a stored type in. */
export const computeType = (dtype: DType): ComputeType => (isNarrow(dtype) ? "float32" : dtype);

/** The WGSL type that kernels compute a type in. */
export const wgslType = { float32: "f32", int32: "i32", bool: "u32" } as const satisfies Record<ComputeType, string>;

/** PyTorch's promotion among these types: bool < int32 < either narrow float < float32, which is also that of both. */
export function promoteTypes(a: DType, b: DType): DType {
  if (a === b) return a;
  if (isFloating(a)) return isFloating(b) ? "float32" : a;
  if (isFloating(b)) return b;
  return "int32";
}

const bitsOf = { float16: toHalf, bfloat16: toBrain } as const satisfies Record<NarrowType, (value: number) => number>;
const numberOf = { float16: fromHalf, bfloat16: fromBrain } as const satisfies Record<
  NarrowType,
  (bits: number) => number
>;

/** The number that a type holds for a number. */
export const rounded = (value: number, dtype: DType): number =>
  isNarrow(dtype) ? numberOf[dtype](bitsOf[dtype](value)) : value;

/** The words that the GPU stores for values of a type, in an array of their own. */
export function encode(values: ArrayLike<number | boolean>, dtype: DType): Words {
  switch (dtype) {
    case "float32":
      return values instanceof Float32Array ? values.slice() : Float32Array.from(values, Number);
    case "float16":
    case "bfloat16": {
      const words = new Uint32Array(Math.ceil(values.length / 2));
      const halves = new Uint16Array(words.buffer);
      for (let i = 0; i < values.length; i++) halves[i] = bitsOf[dtype](Number(values[i]));
      return words;
    }
    case "int32":
      return values instanceof Int32Array ? values.slice() : Int32Array.from(values, Number);
    case "bool":
      return Uint32Array.from(values, (value) => (value ? 1 : 0));
  }
}

/** A copy of the values that the GPU's bytes hold: Float32Array for floats, Int32Array, Uint8Array of 0 and 1 for bool. */
export function decode(bytes: ArrayBuffer, length: number, dtype: DType): TypedArray {
  switch (dtype) {
    case "float32":
      return new Float32Array(bytes, 0, length).slice();
    case "float16":
    case "bfloat16":
      return Float32Array.from(new Uint16Array(bytes, 0, length), numberOf[dtype]);
    case "int32":
      return new Int32Array(bytes, 0, length).slice();
    case "bool":
      return Uint8Array.from(new Uint32Array(bytes, 0, length));
  }
}

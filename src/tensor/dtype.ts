/** Element types, by PyTorch's names. A bool is stored as a u32 that is 0 or 1; every element takes 4 bytes on the GPU. */
export type DType = "float32" | "int32" | "bool";

export type TypedArray = Float32Array | Int32Array | Uint8Array;

export const bytesPerElement = 4;

/** The WGSL type that holds an element in memory. */
export const wgslType = { float32: "f32", int32: "i32", bool: "u32" } as const satisfies Record<DType, string>;

/** PyTorch's promotion among these types: bool < int32 < float32. */
export function promoteTypes(a: DType, b: DType): DType {
  if (a === "float32" || b === "float32") return "float32";
  return a === "int32" || b === "int32" ? "int32" : "bool";
}

/** The words that the GPU stores for values of a type, in an array of their own. */
export function encode(
  values: ArrayLike<number | boolean>,
  dtype: DType,
): Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
  switch (dtype) {
    case "float32":
      return values instanceof Float32Array ? values.slice() : Float32Array.from(values, Number);
    case "int32":
      return values instanceof Int32Array ? values.slice() : Int32Array.from(values, Number);
    case "bool":
      return Uint32Array.from(values, (value) => (value ? 1 : 0));
  }
}

/** A copy of the values that the GPU's bytes hold: Float32Array, Int32Array, or Uint8Array of 0 and 1 for bool. */
export function decode(bytes: ArrayBuffer, length: number, dtype: DType): TypedArray {
  switch (dtype) {
    case "float32":
      return new Float32Array(bytes, 0, length).slice();
    case "int32":
      return new Int32Array(bytes, 0, length).slice();
    case "bool":
      return Uint8Array.from(new Uint32Array(bytes, 0, length));
  }
}

import { flush, Tensor } from "../tensor";
import { Elements, type ElementType, elementTypes } from "./elementType";
import { Float16Bits } from "./float16";

/** A Float16Array, where the platform has it. */
export interface Float16ArrayLike {
  readonly [Symbol.toStringTag]: "Float16Array";
  readonly buffer: ArrayBuffer;
  readonly byteOffset: number;
  readonly length: number;
}

/**
 * What collectives move: values in JavaScript's memory, or a tensor (it is read, and written back).
 * Halves are a Float16Array where the platform has it, or Float16Bits.
 */
export type Values =
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>
  | Float16ArrayLike
  | Float16Bits
  | Tensor;

function elementsOf(values: Exclude<Values, Tensor>): Elements {
  if (values instanceof Float32Array) return new Elements(elementTypes.float32, values);
  if (values instanceof Int32Array) return new Elements(elementTypes.int32, values);
  if (values instanceof Uint32Array) return new Elements(elementTypes.uint32, values);
  if (values instanceof Uint8Array) return new Elements(elementTypes.uint8, values);
  if (values instanceof Float16Bits) return new Elements(elementTypes.float16, values.bits);
  if (values[Symbol.toStringTag] === "Float16Array")
    return new Elements(elementTypes.float16, new Uint16Array(values.buffer, values.byteOffset, values.length));
  throw new TypeError(
    "Collectives take tensors, Float32Array, Float16Array, Float16Bits, Int32Array, Uint32Array and Uint8Array.",
  );
}

export function typeOf(values: Values): ElementType {
  if (!(values instanceof Tensor)) return elementsOf(values).type;
  if (values.dtype === "bfloat16")
    throw new TypeError(
      `The tensor is ${values}; collectives move float32, float16, int32 and bool. Call float() on it.`,
    );
  return elementTypes[values.dtype];
}

export function lengthOf(values: Values): number {
  return values instanceof Tensor ? values.numel : values.length;
}

/** Type and shape, such as float32[8]: what must be equal on all ranks. */
export function describeValues(values: Values): string {
  return values instanceof Tensor ? String(values) : `${typeOf(values).name}[${values.length}]`;
}

/** The values in memory: the array itself, or a copy of what the GPU holds. */
export async function read(values: Values): Promise<Elements> {
  if (!(values instanceof Tensor)) return elementsOf(values);
  const type = typeOf(values);
  const data = await values.data();
  if (type === elementTypes.float16) {
    const halves = Elements.allocate(type, data.length);
    halves.storePartial(0, new Float32Array(data));
    return halves;
  }
  if (data instanceof Float32Array) return new Elements(elementTypes.float32, new Float32Array(data));
  if (data instanceof Int32Array) return new Elements(elementTypes.int32, new Int32Array(data));
  return new Elements(type, new Uint8Array(data));
}

/**
 * Where the values will be received: the array itself, or memory for what goes to the GPU.
 * @throws Error for a tensor that is gone, before anyone sends anything.
 */
export function place(values: Values): Elements {
  // The result of an operation has memory to write to once it is computed.
  if (values instanceof Tensor && values.source.kind === "node") {
    values.keep();
    // Whoever uses the memory sees why, should this fail.
    flush().catch(() => {});
  }
  return values instanceof Tensor ? Elements.allocate(typeOf(values), values.numel) : elementsOf(values);
}

/** Brings what was received where it belongs. */
export function write(values: Values, elements: Elements): void {
  if (values instanceof Tensor) values.write(elements.partialOf(0, elements.length));
}

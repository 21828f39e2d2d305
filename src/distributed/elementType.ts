import { fromHalf, toHalf } from "../base/float16";
import type { NumberKind, PartialArray } from "./reduceOp";

/** The types of what collectives move, by PyTorch's names. */
export type ElementTypeName = "float32" | "float16" | "int32" | "uint32" | "uint8" | "bool";

/** Arrays in which values lie; halves as their bits. */
export type StorageArray = PartialArray | Uint16Array<ArrayBuffer>;

/**
 * A row of the type table. Final values travel as they are stored. Values that are still being combined travel in an array that can hold
 * them without loss: halves as float32, so that their sum neither overflows nor is rounded at every hop.
 */
export interface ElementType {
  readonly name: ElementTypeName;
  /** Stands for the type in messages. */
  readonly code: number;
  readonly kind: NumberKind;
  /** Bytes of a stored value. */
  readonly bytes: number;
  /** Bytes of a value that is being combined. */
  readonly partialBytes: number;
  allocate(length: number): StorageArray;
  /** A view of bytes as values that are being combined; their offset must be a multiple of partialBytes. */
  viewPartial(bytes: Uint8Array<ArrayBuffer>): PartialArray;
  /** Stored values as values to combine: a view, or a converted copy. */
  toPartial(values: StorageArray): PartialArray;
  /** Stores combined values, rounding where need be. */
  fromPartial(values: PartialArray, into: StorageArray): void;
}

interface PartialArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, offset: number, length: number): PartialArray;
}

/** A type whose values are combined as they are stored. */
function plain(name: ElementTypeName, code: number, kind: NumberKind, Values: PartialArrayConstructor): ElementType {
  const bytes = Values.BYTES_PER_ELEMENT;
  const view = (values: StorageArray | Uint8Array<ArrayBuffer>) =>
    new Values(values.buffer, values.byteOffset, values.byteLength / bytes);
  return {
    name,
    code,
    kind,
    bytes,
    partialBytes: bytes,
    allocate: (length) => new Values(new ArrayBuffer(length * bytes), 0, length),
    viewPartial: view,
    toPartial: view,
    fromPartial: (values, into) => into.set(values),
  };
}

const float16: ElementType = {
  name: "float16",
  code: 2,
  kind: "float",
  bytes: 2,
  partialBytes: 4,
  allocate: (length) => new Uint16Array(length),
  viewPartial: (bytes) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  toPartial: (values) => Float32Array.from(values, fromHalf),
  fromPartial: (values, into) => {
    for (let index = 0; index < values.length; index += 1) into[index] = toHalf(values[index]!);
  },
};

export const elementTypes: Readonly<Record<ElementTypeName, ElementType>> = {
  float32: plain("float32", 1, "float", Float32Array<ArrayBuffer>),
  float16,
  int32: plain("int32", 3, "integer", Int32Array<ArrayBuffer>),
  uint32: plain("uint32", 4, "integer", Uint32Array<ArrayBuffer>),
  uint8: plain("uint8", 5, "integer", Uint8Array<ArrayBuffer>),
  bool: plain("bool", 6, "boolean", Uint8Array<ArrayBuffer>),
};

/** Values in memory, with their type. */
export class Elements {
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(
    readonly type: ElementType,
    readonly array: StorageArray,
  ) {
    this.#bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  }

  static allocate(type: ElementType, length: number): Elements {
    return new Elements(type, type.allocate(length));
  }

  get length(): number {
    return this.array.length;
  }

  slice(start: number, end: number): Elements {
    return new Elements(this.type, this.array.subarray(start, end));
  }

  /** The bytes of stored values: a view. */
  bytesOf(start: number, end: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(start * this.type.bytes, end * this.type.bytes);
  }

  /** Stored values as values to combine: a view, or a converted copy. */
  partialOf(start: number, end: number): PartialArray {
    return this.type.toPartial(this.array.subarray(start, end));
  }

  /** Stores bytes of final values. */
  storeBytes(at: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes.set(bytes, at * this.type.bytes);
  }

  /** Stores combined values. */
  storePartial(at: number, values: PartialArray): void {
    this.type.fromPartial(values, this.array.subarray(at, at + values.length));
  }

  copyFrom(values: Elements, at = 0): void {
    this.#bytes.set(values.bytesOf(0, values.length), at * this.type.bytes);
  }
}

export function bytesOf(array: PartialArray): Uint8Array<ArrayBuffer> {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

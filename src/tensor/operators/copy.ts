import { elementFunction, emitElementwise } from "./elementwiseKernel";
import type { BufferValue, Lowering, Value } from "./table";

export const identity = elementFunction({ name: "copy", body: "return a;" });

/** Writes a value's elements to `out`, which may be a view of any strides; a smaller shape is broadcast. */
export function copyInto(lowering: Lowering, value: Value, out: BufferValue): void {
  emitElementwise(lowering, identity, [value], out);
}

/** Writes one number to every element of `out`. */
export function fillInto(lowering: Lowering, value: number, out: BufferValue): void {
  const { shape, dtype } = out;
  copyInto(lowering, { kind: "constant", scalar: { literal: value }, shape, dtype }, out);
}

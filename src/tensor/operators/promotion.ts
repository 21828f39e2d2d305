import { apply } from "../apply";
import { type ComputeType, type DType, isFloating, promoteTypes } from "../dtype";
import { Tensor } from "../tensor";
import { constant } from "./creation";
import { type Operand, to } from "./elementwise";
import type { Operator } from "./table";

function numberType(value: number, other: DType): DType {
  if (isFloating(other)) return other;
  return Number.isInteger(value) ? "int32" : "float32";
}

/** Among floats, what has dimensions decides. */
function promotedType(a: Operand, b: Operand): DType {
  const typeOfA = a instanceof Tensor ? a.dtype : numberType(a, b instanceof Tensor ? b.dtype : "float32");
  const typeOfB = b instanceof Tensor ? b.dtype : numberType(b, typeOfA);
  if (a instanceof Tensor && b instanceof Tensor && isFloating(typeOfA) && isFloating(typeOfB)) {
    if (a.ndim > 0 && b.ndim === 0) return typeOfA;
    if (b.ndim > 0 && a.ndim === 0) return typeOfB;
  }
  return promoteTypes(typeOfA, typeOfB);
}

/** Both operands as tensors of the type that PyTorch promotes them to, which is of `least`'s kind or above. */
export function promoted(a: Operand, b: Operand, least: ComputeType = "bool"): [Tensor, Tensor] {
  const common = promotedType(a, b);
  const dtype = isFloating(common) ? common : promoteTypes(common, least);
  return [asTensor(a, dtype), asTensor(b, dtype)];
}

/** A number is not rounded to a narrow type: kernels take it as it is. */
export const asTensor = (operand: Operand, dtype: DType): Tensor =>
  operand instanceof Tensor ? to(operand, dtype) : constant([], operand, dtype);

/** Integers as float32; floats as they are. */
export const floating = (input: Tensor): Tensor => (isFloating(input.dtype) ? input : to(input, "float32"));

/** The public function of a row with one operand, which gives a float. */
export function unary(row: Operator): (input: Tensor) => Tensor {
  return (input) => apply(row, [floating(input)], {});
}

/** The public function of a row with one operand, which keeps integers. */
export function unaryNumeric(row: Operator): (input: Tensor) => Tensor {
  return (input) => apply(row, [input.dtype === "bool" ? to(input, "int32") : input], {});
}

/** The public function of a row with two operands. */
export function binary(row: Operator, least: ComputeType): (a: Operand, b: Operand) => Tensor {
  return (a, b) => apply(row, promoted(a, b, least), {});
}

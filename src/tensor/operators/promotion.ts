import { apply } from "../apply";
import { type DType, promoteTypes } from "../dtype";
import { Tensor } from "../tensor";
import { full } from "./creation";
import { type Operand, to } from "./elementwise";
import type { Operator } from "./table";

const numberType = (value: number, other: DType): DType =>
  other === "float32" || !Number.isInteger(value) ? "float32" : "int32";

/** Both operands as tensors of the type that PyTorch promotes them to, which is `least` or above. */
export function promoted(a: Operand, b: Operand, least: DType = "bool"): [Tensor, Tensor] {
  const typeOfA = a instanceof Tensor ? a.dtype : numberType(a, b instanceof Tensor ? b.dtype : "float32");
  const typeOfB = b instanceof Tensor ? b.dtype : numberType(b, typeOfA);
  const dtype = promoteTypes(promoteTypes(typeOfA, typeOfB), least);
  return [asTensor(a, dtype), asTensor(b, dtype)];
}

export const asTensor = (operand: Operand, dtype: DType): Tensor =>
  operand instanceof Tensor ? to(operand, dtype) : full([], operand, { dtype });

/** The public function of a row with one operand, which gives float32. */
export function unary(row: Operator): (input: Tensor) => Tensor {
  return (input) => apply(row, [to(input, "float32")], {});
}

/** The public function of a row with one operand, which keeps integers. */
export function unaryNumeric(row: Operator): (input: Tensor) => Tensor {
  return (input) => apply(row, [input.dtype === "bool" ? to(input, "int32") : input], {});
}

/** The public function of a row with two operands. */
export function binary(row: Operator, least: DType): (a: Operand, b: Operand) => Tensor {
  return (a, b) => apply(row, promoted(a, b, least), {});
}

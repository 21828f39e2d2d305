import type { ElementType } from "./elementType";
import { type Combine, combineFor, kindsOf, type PartialArray, type ReduceOp } from "./reduceOp";

/** How the values of all ranks are combined, and what is done to the result at last. */
export interface Reduction {
  readonly combine: Combine;
  /** Divides where a mean is wanted, and gives every NaN the same bits where several members compute the same result. */
  readonly finish: (values: PartialArray, isReplicated: boolean) => void;
}

/** @throws TypeError when the operation isn't defined for the type. */
export function reductionOf(op: ReduceOp, type: ElementType, worldSize: number): Reduction {
  const combine = combineFor(op, type.kind);
  if (combine === null)
    throw new TypeError(
      `The operation "${op}" takes ${kindsOf(op).join(" or ")} values, and these are ${type.name}${
        op === "avg" ? `: sum them and divide, or average float32 values` : ""
      }.`,
    );
  return {
    combine,
    finish: (values, isReplicated) => {
      if (op === "avg")
        for (let index = 0; index < values.length; index += 1) values[index] = values[index]! / worldSize;
      if (isReplicated && type.kind === "float") unifyNaNs(values);
    },
  };
}

/** Which NaN an addition gives differs between processors, and between orders of its operands. */
function unifyNaNs(values: PartialArray): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let index = 0; index < bits.length; index += 1)
    if ((bits[index]! & 0x7fffffff) > 0x7f800000) bits[index] = 0x7fc00000;
}

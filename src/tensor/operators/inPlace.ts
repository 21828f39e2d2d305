import { apply, noGrad } from "../apply";
import { describeShape, OperatorError, sameShape } from "../shape";
import { newStorage, type Storage } from "../storage";
import type { Tensor } from "../tensor";
import { copyInto } from "./copy";
import { to } from "./elementwise";
import { elementFunction, emitElementwise } from "./elementwiseKernel";
import type { BufferValue, Lowering, Operator, Value } from "./table";
import { expand } from "./views";

/** Changes of persistent tensors. Their first input is the target, which must be a tensor with memory of its own. */
function inPlaceRow(name: string, emit: (lowering: Lowering, target: BufferValue, value: Value) => void): Operator {
  return {
    name,
    effect: true,
    takesNarrow: true,
    infer([target, value]) {
      if (!sameShape(target!.shape, value!.shape))
        throw new OperatorError(
          name,
          `the value has shape ${describeShape(value!.shape)}; expected the target's, ${describeShape(target!.shape)}`,
        );
      return target!;
    },
    lower(lowering, { inputs: [target, value] }) {
      if (target!.kind !== "buffer") throw new Error(`${name}: the target is a constant.`);
      emit(lowering, target!, value!);
      return target!;
    },
  };
}

const plus = elementFunction({ name: "accumulate_", body: "return o + a;", updates: true });
const copyRow = inPlaceRow("copy_", (lowering, target, value) => copyInto(lowering, value, target));
const accumulateRow = inPlaceRow("accumulate_", (lowering, target, value) =>
  emitElementwise(lowering, plus, [value], target),
);

const zeroRow: Operator = {
  name: "zero_",
  effect: true,
  takesNarrow: true,
  infer: ([target]) => target!,
  lower(lowering, { inputs: [target] }) {
    if (target!.kind === "buffer") lowering.zero(target!);
    return target!;
  },
};

export const inPlace: readonly Operator[] = [copyRow, accumulateRow, zeroRow];

/** Sets a leaf's elements to zero, after everything recorded before. Not differentiable. */
export function zero_(target: Tensor): Tensor {
  const { memory } = persistentStorage("zero_", target);
  noGrad(() => apply(zeroRow, [target], {}));
  memory.version += 1;
  return target;
}

/** Overwrites a leaf's elements with `value`, broadcast, after everything recorded before. Not differentiable. */
export const copy_ = (target: Tensor, value: Tensor): Tensor => change(copyRow, target, value);

/** Adds `value`, broadcast, to a leaf's elements, after everything recorded before. Not differentiable. */
export const accumulate_ = (target: Tensor, value: Tensor): Tensor => change(accumulateRow, target, value);

function change(row: Operator, target: Tensor, value: Tensor): Tensor {
  const { memory } = persistentStorage(row.name, target);
  noGrad(() => apply(row, [target, expand(to(value, target.dtype), target.shape)], {}));
  memory.version += 1;
  return target;
}

/**
 * The memory of an in-place operation's target. A tensor that so far was only a rule for making it (zeros, rand) gets
 * its memory here.
 */
export function persistentStorage(operator: string, target: Tensor): Storage {
  const { source } = target;
  switch (source.kind) {
    case "storage":
      return source.storage;
    case "node":
      if (source.storage && source.recording.flushed) return source.storage;
      throw new OperatorError(
        operator,
        `the target ${target} is the result of an operation; expected a tensor made from data, a parameter or a gradient, which has memory of its own`,
      );
    case "recipe": {
      const before = target.detach();
      const storage = newStorage(target.numel, `a tensor of shape ${describeShape(target.shape)}`, target.dtype);
      target.source = { kind: "storage", storage };
      const isZeros = source.operator.name === "full" && source.scalars[0] === 0;
      if (!isZeros) copy_(target, before);
      return storage;
    }
  }
}

import { type DType, isFloating } from "./dtype";
import { copy_ } from "./operators/inPlace";
import { describeShape, OperatorError } from "./shape";
import { newStorage } from "./storage";
import type { Tensor } from "./tensor";

/**
 * Gives a leaf another type: it stays the same tensor, with its values converted and no gradient. What was recorded with
 * it before keeps the old values.
 * @throws OperatorError for what isn't a leaf of floats.
 */
export function changeDtype_(target: Tensor, dtype: Extract<DType, "float32" | "float16" | "bfloat16">): Tensor {
  if (!target.isLeaf || !isFloating(target.dtype))
    throw new OperatorError("changeDtype_", `the target is ${target}; expected a leaf of floats`);
  if (target.dtype === dtype) return target;
  const before = target.detach();
  const storage = newStorage(target.numel, `a tensor of shape ${describeShape(target.shape)}`, dtype);
  target.source = { kind: "storage", storage };
  target.dtype = dtype;
  target.grad = null;
  return copy_(target, before);
}

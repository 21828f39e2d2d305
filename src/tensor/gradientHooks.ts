import { OperatorError, sameShape } from "./shape";
import type { Tensor } from "./tensor";

/** Sees a tensor's gradient; what it returns, if anything, takes its place. */
export type GradientHook = (gradient: Tensor) => Tensor | undefined;

const hooks = new WeakMap<Tensor, Set<GradientHook>>();

/**
 * torch.Tensor.register_hook: calls `hook` with the gradient of a tensor in each backward pass, before it flows on.
 * @returns what takes the hook away.
 */
export function registerHook(tensor: Tensor, hook: GradientHook): () => void {
  if (!tensor.requiresGrad)
    throw new OperatorError("registerHook", `the tensor ${tensor} requires no gradient; expected one that does`);
  const own = hooks.get(tensor) ?? new Set();
  hooks.set(tensor, own);
  own.add(hook);
  return () => void own.delete(hook);
}

/** The gradient after the tensor's hooks. */
export function afterHooks(tensor: Tensor, gradient: Tensor): Tensor {
  let result = gradient;
  for (const hook of hooks.get(tensor) ?? []) {
    result = hook(result) ?? result;
    if (!sameShape(result.shape, tensor.shape))
      throw new OperatorError("registerHook", `a hook on ${tensor} returned ${result}; expected the tensor's shape`);
  }
  return result;
}

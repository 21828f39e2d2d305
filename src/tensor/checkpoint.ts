import { areGradientsEnabled, withGradients } from "./apply";
import { currentRegion, emptied, withRegion } from "./autocast";
import { recomputed } from "./recomputation";

/**
 * Runs `fn` so that what it computes on the way takes no memory until the backward pass, which runs it again: memory
 * for time, as torch.utils.checkpoint (`use_reentrant=False`). Gradients have the same bits as without it.
 *
 * Kept are `fn`'s inputs and what it uses from outside, parameters for example. Random draws, such as dropout's, repeat
 * their numbers; changes in place, such as batch norm's running moments, happen only the first time. Calls may be
 * nested. The function runs again in the autocast region that it ran in. Under `noGrad`, `fn` just runs.
 *
 *     const hidden = checkpoint((x) => block.forward(x), x);
 *
 * @param fn must record the same operations when it runs again: it may not depend on what changes in between.
 * @returns what `fn` returns.
 * @throws Error where `fn` is asynchronous; OperatorError from `backward()` where it differs when it runs again.
 */
export function checkpoint<Inputs extends readonly unknown[], Result>(
  fn: (...inputs: Inputs) => Result,
  ...inputs: Inputs
): Result {
  if (!areGradientsEnabled()) return fn(...inputs);
  const region = currentRegion();
  // Casts that were kept are calls of the function's own, in each run.
  const run = () => withRegion(emptied(region), () => withGradients(true, () => fn(...inputs)));
  return recomputed(run, run);
}

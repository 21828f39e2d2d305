import { zero_ } from "./operators/inPlace";
import type { Tensor } from "./tensor";

/** Sets the gradients that leaves have to zero, in the memory they have. */
export function zeroGradients(leaves: Iterable<Tensor>): void {
  for (const { grad } of leaves) if (grad) zero_(grad);
}

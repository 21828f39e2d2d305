import { zero_ } from "./operators/inPlace";
import type { Tensor } from "./tensor";
import { noteUse } from "./trace";

/** Sets the gradients that leaves have to zero, in the memory they have. */
export function zeroGradients(leaves: Iterable<Tensor>): void {
  for (const leaf of leaves) {
    noteUse(leaf);
    if (leaf.grad) zero_(leaf.grad);
  }
}

import { BatchNorm2d, Conv2d, type Module, Sequential, Tanh } from "../../nn";
import { manualSeed, type Tensor, tensor } from "../../tensor";

/** Two batch norms with a convolution before each, on images of 2x2. */
export function makeNet(): Sequential {
  manualSeed(4);
  return new Sequential(
    new Conv2d(1, 3, 1),
    new BatchNorm2d(3),
    new Tanh(),
    new Conv2d(3, 2, 1),
    new BatchNorm2d(2, { momentum: null }),
  );
}

export const images = Array.from({ length: 5 * 4 }, (_, i) => Math.sin(3 * i) + 0.2 * i);
const weights = Array.from({ length: 5 * 2 * 4 }, (_, i) => Math.cos(i));

/** The sum of the outputs of images [from, to), each with a weight of its own. */
export function lossOf(model: Module, from: number, to: number): Tensor {
  const count = to - from;
  const output = model.forward(tensor(images.slice(4 * from, 4 * to), { shape: [count, 1, 2, 2] }));
  return output.mul(tensor(weights.slice(8 * from, 8 * to), { shape: [count, 2, 2, 2] })).sum();
}

/** Gradients and state after a step, by name. */
export async function outcomeOf(model: Module): Promise<Record<string, number[]>> {
  const outcome: Record<string, number[]> = {};
  for (const [name, { grad }] of model.namedParameters()) if (grad) outcome[`${name}.grad`] = [...(await grad.data())];
  for (const [name, buffer] of model.namedBuffers()) outcome[name] = [...(await buffer.data())];
  return outcome;
}

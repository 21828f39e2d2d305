import { expect, test } from "vitest";
import { OffloadedOptimizer } from "./offloaded";
import { parseOptimizerSpec } from "./spec";

/** Weights after 12 steps with `gradientsAt`, as torch.optim of PyTorch 1.13 computes them in float64. */
const pytorch: readonly [title: string, options: object, weights: readonly number[]][] = [
  [
    "sgd",
    { name: "sgd", learningRate: 0.1, momentum: 0.9, dampening: 0.3, weightDecay: 0.01 },
    [0.62728552, -0.60362042, -0.51412228, 2.49585882],
  ],
  [
    "sgd with nesterov",
    { name: "sgd", learningRate: 0.1, momentum: 0.9, nesterov: true },
    [0.61086002, -0.56644463, -0.60804757, 2.68642841],
  ],
  [
    "adam with amsgrad",
    { name: "adam", learningRate: 0.05, weightDecay: 0.1, amsgrad: true },
    [0.57218394, -0.95552123, -0.04636621, 2.30283407],
  ],
  [
    "adamw, maximizing",
    { name: "adamw", learningRate: 0.05, weightDecay: 0.1, maximize: true },
    [0.64818684, -1.27782854, 0.13975373, 2.33288562],
  ],
  [
    "nadam",
    { name: "nadam", learningRate: 0.05, weightDecay: 0.1 },
    [0.61200128, -1.02694537, -0.03307415, 2.36864621],
  ],
  ["radam", { name: "radam", learningRate: 0.05, weightDecay: 0.1 }, [0.68241502, -1.08508587, 0.01573396, 2.40575432]],
  [
    "adamax",
    { name: "adamax", learningRate: 0.05, weightDecay: 0.1 },
    [0.6420611, -1.02292739, -0.02769655, 2.35670329],
  ],
  [
    "adagrad",
    { name: "adagrad", learningRate: 0.1, learningRateDecay: 0.1, initialAccumulatorValue: 0.2, weightDecay: 0.1 },
    [0.62147663, -1.05766796, -0.02268097, 2.39832596],
  ],
  ["adadelta", { name: "adadelta", weightDecay: 0.1 }, [0.69198636, -1.18913083, 0.04468139, 2.49195106]],
  [
    "rmsprop",
    { name: "rmsprop", learningRate: 0.05, weightDecay: 0.1 },
    [0.41929181, -0.37155992, -0.40331032, 1.61313945],
  ],
  [
    "rmsprop, centered, with momentum",
    { name: "rmsprop", learningRate: 0.01, momentum: 0.9, centered: true },
    [0.92870555, -0.5724547, -0.53710355, 2.87116788],
  ],
  // Not in PyTorch: computed in float64 from the formula of its authors.
  ["lion", { name: "lion", learningRate: 0.05, weightDecay: 0.1 }, [0.75670248, -1.03286871, 0.0470787, 2.45356919]],
];

const gradientsAt = (step: number) =>
  Float32Array.from({ length: 4 }, (_, i) => ((((step * 7 + i * 13) % 19) - 9) / 10) * ((i + 1) / 2));

test.each(pytorch)("%s takes PyTorch's steps", (_, options, expected) => {
  const optimizer = new OffloadedOptimizer(parseOptimizerSpec(options), 4);
  const weights = Float32Array.of(0.7, -1.2, 0.05, 2.5);
  for (let step = 1; step <= 12; step++) optimizer.step(weights, gradientsAt(step));
  // 12 steps, each of which rounds numbers below 4 to 2^-23 a few times.
  for (const [i, want] of expected.entries()) expect(Math.abs(weights[i]! - want), `weight ${i}`).toBeLessThan(5e-6);
});

import {
  AvgPool2d,
  Conv2d,
  Flatten,
  GELU,
  GroupNorm,
  Linear,
  MaxPool2d,
  type Module,
  ReLU,
  Sequential,
} from "../../nn";
import type { ModelName } from "../spec";

/** Rows and columns of an MNIST digit. */
export const digitSide = 28;

/**
 * The models of the MNIST recipe: [batch, 1, 28, 28] pixels between 0 and 1 to [batch, 10] logits.
 * The CNN normalises by groups of channels within a sample, so that a sample's gradient does not depend on who else is
 * in its micro-batch.
 */
export const mnistModels: Record<ModelName, () => Module> = {
  mlp: () =>
    new Sequential(
      new Flatten(),
      new Linear(digitSide * digitSide, 128),
      new ReLU(),
      new Linear(128, 64),
      new GELU(),
      new Linear(64, 10),
    ),
  cnn: () =>
    new Sequential(
      new Conv2d(1, 16, 3, { padding: 1 }),
      new GroupNorm(4, 16),
      new ReLU(),
      new MaxPool2d(2),
      new Conv2d(16, 32, 3, { padding: 1 }),
      new GroupNorm(4, 32),
      new ReLU(),
      new AvgPool2d(2),
      new Flatten(),
      new Linear(32 * 7 * 7, 10),
    ),
};

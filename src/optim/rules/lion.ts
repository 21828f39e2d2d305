import type { LionSpec } from "../spec";
import { movingAverage, type UpdateRule } from "./rule";

/**
 * Lion (Chen et al. 2023): w = w (1 - lr decay) - lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g.
 */
export function lionRule({ beta2, weightDecay, maximize }: LionSpec): UpdateRule {
  return {
    state: ["moment"],
    scalars: {
      learningRate: (_, learningRate) => learningRate,
      beta1: (_, __, beta1) => beta1,
      beta1Complement: (_, __, beta1) => 1 - beta1,
      beta2: () => beta2,
      beta2Complement: () => 1 - beta2,
      kept: (_, learningRate) => 1 - learningRate * weightDecay,
    },
    update(arithmetic, inputs) {
      const { subtract, multiply, negate, sign } = arithmetic;
      const { scalar } = inputs;
      const [previous = inputs.weight] = inputs.state;
      const gradient = maximize ? negate(inputs.gradient) : inputs.gradient;
      const weight = weightDecay === 0 ? inputs.weight : multiply(inputs.weight, scalar("kept"));
      const direction = sign(movingAverage(arithmetic, inputs, previous, gradient, "beta1", "beta1Complement"));
      const moment = movingAverage(arithmetic, inputs, previous, gradient, "beta2", "beta2Complement");
      return { weight: subtract(weight, multiply(scalar("learningRate"), direction)), state: [moment] };
    },
  };
}

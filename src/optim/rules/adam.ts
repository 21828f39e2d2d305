import { integerPower, power } from "../elementary";
import type { AdamaxSpec, AdamSpec, NadamSpec, RadamSpec } from "../spec";
import { descentDirection, movingAverage, movingSquare, type RuleScalars, type UpdateRule } from "./rule";

/** beta1 is the momentum. */
const momentScalars = ({ beta2, epsilon, weightDecay }: Omit<AdamSpec, "name">): RuleScalars => ({
  beta1: (_, __, beta1) => beta1,
  beta1Complement: (_, __, beta1) => 1 - beta1,
  beta2: () => beta2,
  beta2Complement: () => 1 - beta2,
  epsilon: () => epsilon,
  weightDecay: () => weightDecay,
});

/**
 * torch.optim.Adam and AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019; Reddi et al. 2018 for amsgrad):
 * m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g²; w = w - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
 */
export function adamRule(spec: AdamSpec): UpdateRule {
  const { name, beta2, weightDecay, amsgrad, maximize } = spec;
  const decoupled = name === "adamw";
  return {
    state: amsgrad ? ["firstMoment", "secondMoment", "largestSecondMoment"] : ["firstMoment", "secondMoment"],
    scalars: {
      stepSize: (step, learningRate, beta1) => learningRate / (1 - integerPower(beta1, step)),
      secondMomentCorrection: (step) => Math.sqrt(1 - integerPower(beta2, step)),
      ...momentScalars(spec),
      kept: (_, learningRate) => 1 - learningRate * weightDecay,
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, maximum, squareRoot } = arithmetic;
      const { scalar } = inputs;
      const [previousFirst = inputs.weight, previousSecond = inputs.weight, previousLargest] = inputs.state;
      const isDecayed = decoupled && weightDecay !== 0;
      const weight = isDecayed ? multiply(inputs.weight, scalar("kept")) : inputs.weight;
      const gradient = descentDirection(arithmetic, inputs, { weightDecay: decoupled ? 0 : weightDecay, maximize });
      const first = movingAverage(arithmetic, inputs, previousFirst, gradient, "beta1", "beta1Complement");
      const second = movingSquare(arithmetic, inputs, previousSecond, gradient, "beta2", "beta2Complement");
      const state = [first, second];
      let variance = second;
      if (previousLargest !== undefined) {
        variance = maximum(previousLargest, second);
        state.push(variance);
      }
      const denominator = add(divide(squareRoot(variance), scalar("secondMomentCorrection")), scalar("epsilon"));
      return { weight: subtract(weight, divide(multiply(scalar("stepSize"), first), denominator)), state };
    },
  };
}

/**
 * torch.optim.NAdam (Dozat 2016): Adam with Nesterov momentum, whose coefficients mu_t = b1 (1 - 0.96^(t psi) / 2) grow
 * towards b1; psi is `momentumDecay`.
 */
export function nadamRule(spec: NadamSpec): UpdateRule {
  const { beta2, momentumDecay } = spec;
  const coefficient = (step: number, beta1: number) => beta1 * (1 - 0.5 * power(0.96, step * momentumDecay));
  const products = { step: 0, product: 1 };
  /** mu_1 ... mu_t, of which the last is remembered. */
  const product = (step: number, beta1: number) => {
    if (step < products.step) Object.assign(products, { step: 0, product: 1 });
    for (; products.step < step; products.step++) products.product *= coefficient(products.step + 1, beta1);
    return products.product;
  };
  return {
    state: ["firstMoment", "secondMoment"],
    scalars: {
      gradientStep: (step, learningRate, beta1) =>
        (learningRate * (1 - coefficient(step, beta1))) / (1 - product(step, beta1)),
      // As PyTorch 1.13, the reference, has it: its product for the next step holds mu_t twice.
      momentStep: (step, learningRate, beta1) => {
        const next = coefficient(step + 1, beta1);
        return (learningRate * next) / (1 - product(step, beta1) * coefficient(step, beta1) * next);
      },
      secondMomentCorrection: (step) => 1 - integerPower(beta2, step),
      ...momentScalars({ ...spec, amsgrad: false }),
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, squareRoot } = arithmetic;
      const { weight, scalar } = inputs;
      const [previousFirst = weight, previousSecond = weight] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const first = movingAverage(arithmetic, inputs, previousFirst, gradient, "beta1", "beta1Complement");
      const second = movingSquare(arithmetic, inputs, previousSecond, gradient, "beta2", "beta2Complement");
      const denominator = add(squareRoot(divide(second, scalar("secondMomentCorrection"))), scalar("epsilon"));
      const moved = subtract(weight, divide(multiply(scalar("gradientStep"), gradient), denominator));
      return {
        weight: subtract(moved, divide(multiply(scalar("momentStep"), first), denominator)),
        state: [first, second],
      };
    },
  };
}

/**
 * torch.optim.RAdam (Liu et al. 2020): Adam whose adaptive step is rectified by the variance's uncertainty, and a step
 * of momentum alone while that is too large.
 */
export function radamRule(spec: RadamSpec): UpdateRule {
  const { beta2 } = spec;
  const longest = 2 / (1 - beta2) - 1;
  /** The factor of m / (sqrt(v) + epsilon), or null while the variance isn't tractable. */
  const rectification = (step: number): number | null => {
    const decayed = integerPower(beta2, step);
    const length = longest - (2 * step * decayed) / (1 - decayed);
    if (length <= 5) return null;
    const ratio = ((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length);
    return Math.sqrt(ratio) * Math.sqrt(1 - decayed);
  };
  return {
    state: ["firstMoment", "secondMoment"],
    scalars: {
      stepSize: (step, learningRate, beta1) => learningRate / (1 - integerPower(beta1, step)),
      adaptive: (step) => rectification(step) ?? 0,
      plain: (step) => (rectification(step) === null ? 1 : 0),
      ...momentScalars({ ...spec, amsgrad: false }),
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, squareRoot } = arithmetic;
      const { weight, scalar } = inputs;
      const [previousFirst = weight, previousSecond = weight] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const first = movingAverage(arithmetic, inputs, previousFirst, gradient, "beta1", "beta1Complement");
      const second = movingSquare(arithmetic, inputs, previousSecond, gradient, "beta2", "beta2Complement");
      const adaptive = divide(scalar("adaptive"), add(squareRoot(second), scalar("epsilon")));
      const factor = add(adaptive, scalar("plain"));
      return {
        weight: subtract(weight, multiply(multiply(scalar("stepSize"), first), factor)),
        state: [first, second],
      };
    },
  };
}

/**
 * torch.optim.Adamax (Kingma and Ba 2015): m = b1 m + (1 - b1) g; u = max(b2 u, |g| + epsilon);
 * w = w - lr / (1 - b1^t) m / u.
 */
export function adamaxRule(spec: AdamaxSpec): UpdateRule {
  return {
    state: ["firstMoment", "largestGradient"],
    scalars: {
      stepSize: (step, learningRate, beta1) => learningRate / (1 - integerPower(beta1, step)),
      ...momentScalars({ ...spec, amsgrad: false }),
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, maximum, absolute, flush } = arithmetic;
      const { weight, scalar } = inputs;
      const [previousFirst = weight, previousLargest = weight] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const first = movingAverage(arithmetic, inputs, previousFirst, gradient, "beta1", "beta1Complement");
      const decayed = flush(multiply(scalar("beta2"), previousLargest));
      const largest = maximum(decayed, add(absolute(gradient), scalar("epsilon")));
      return {
        weight: subtract(weight, divide(multiply(scalar("stepSize"), first), largest)),
        state: [first, largest],
      };
    },
  };
}

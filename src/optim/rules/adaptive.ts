import type { AdadeltaSpec, AdagradSpec, RmspropSpec } from "../spec";
import { descentDirection, movingAverage, movingSquare, type UpdateRule } from "./rule";

/** torch.optim.Adagrad (Duchi et al. 2011): s = s + g²; w = w - lr / (1 + (t - 1) decay) g / (sqrt(s) + epsilon). */
export function adagradRule(spec: AdagradSpec): UpdateRule {
  const { learningRateDecay, weightDecay, initialAccumulatorValue, epsilon } = spec;
  return {
    state: ["sum"],
    scalars: {
      stepSize: (step, learningRate) => learningRate / (1 + (step - 1) * learningRateDecay),
      weightDecay: () => weightDecay,
      initial: (step) => (step === 1 ? initialAccumulatorValue : 0),
      epsilon: () => epsilon,
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, squareRoot } = arithmetic;
      const { weight, scalar } = inputs;
      const [previous = weight] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const started = initialAccumulatorValue === 0 ? previous : add(previous, scalar("initial"));
      const sum = add(started, multiply(gradient, gradient));
      const denominator = add(squareRoot(sum), scalar("epsilon"));
      return {
        weight: subtract(weight, divide(multiply(scalar("stepSize"), gradient), denominator)),
        state: [sum],
      };
    },
  };
}

/**
 * torch.optim.Adadelta (Zeiler 2012): s = rho s + (1 - rho) g²; d = sqrt(a + epsilon) / sqrt(s + epsilon) g;
 * a = rho a + (1 - rho) d²; w = w - lr d.
 */
export function adadeltaRule(spec: AdadeltaSpec): UpdateRule {
  const { rho, epsilon, weightDecay } = spec;
  return {
    state: ["squareAverage", "deltaAverage"],
    scalars: {
      learningRate: (_, learningRate) => learningRate,
      rho: () => rho,
      rhoComplement: () => 1 - rho,
      epsilon: () => epsilon,
      weightDecay: () => weightDecay,
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, squareRoot } = arithmetic;
      const { weight, scalar } = inputs;
      const [previousSquare = weight, previousDelta = weight] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const square = movingSquare(arithmetic, inputs, previousSquare, gradient, "rho", "rhoComplement");
      const root = (of: typeof weight) => squareRoot(add(of, scalar("epsilon")));
      const delta = multiply(divide(root(previousDelta), root(square)), gradient);
      const deltas = movingSquare(arithmetic, inputs, previousDelta, delta, "rho", "rhoComplement");
      return {
        weight: subtract(weight, multiply(scalar("learningRate"), delta)),
        state: [square, deltas],
      };
    },
  };
}

/**
 * torch.optim.RMSprop (Hinton 2012): s = alpha s + (1 - alpha) g²; w = w - lr g / (sqrt(s) + epsilon), with momentum
 * over these steps, and s less the squared average gradient where `centered` (Graves 2013).
 */
export function rmspropRule(spec: RmspropSpec): UpdateRule {
  const { alpha, epsilon, weightDecay, momentum, centered } = spec;
  return {
    state: ["squareAverage", ...(centered ? ["gradientAverage"] : []), ...(momentum === 0 ? [] : ["momentumBuffer"])],
    scalars: {
      learningRate: (_, learningRate) => learningRate,
      alpha: () => alpha,
      alphaComplement: () => 1 - alpha,
      epsilon: () => epsilon,
      weightDecay: () => weightDecay,
      momentum: (_, __, value) => value,
      zero: () => 0,
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, divide, maximum, squareRoot, flush } = arithmetic;
      const { weight, scalar } = inputs;
      const [previousSquare = weight, ...others] = inputs.state;
      const gradient = descentDirection(arithmetic, inputs, spec);
      const square = movingSquare(arithmetic, inputs, previousSquare, gradient, "alpha", "alphaComplement");
      const state = [square];
      let variance = square;
      const previousAverage = centered ? others.shift() : undefined;
      if (previousAverage !== undefined) {
        const average = movingAverage(arithmetic, inputs, previousAverage, gradient, "alpha", "alphaComplement");
        state.push(average);
        // Rounding may take it below 0 where the gradient hardly changes.
        variance = maximum(subtract(square, multiply(average, average)), scalar("zero"));
      }
      const step = divide(gradient, add(squareRoot(variance), scalar("epsilon")));
      const [previousBuffer] = others;
      if (previousBuffer === undefined)
        return { weight: subtract(weight, multiply(scalar("learningRate"), step)), state };
      const buffer = flush(add(multiply(scalar("momentum"), previousBuffer), step));
      return { weight: subtract(weight, multiply(scalar("learningRate"), buffer)), state: [...state, buffer] };
    },
  };
}

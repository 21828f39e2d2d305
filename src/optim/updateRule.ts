import type { AdamSpec, OptimizerSpec, SgdSpec } from "./spec";

/**
 * The arithmetic that an update rule is written in. Each implementation gives a value its meaning: a WGSL expression, a
 * WASM local, a number. Every operation rounds to float32 once, in the order written.
 */
export interface Arithmetic<Value> {
  add(a: Value, b: Value): Value;
  subtract(a: Value, b: Value): Value;
  multiply(a: Value, b: Value): Value;
  divide(a: Value, b: Value): Value;
  maximum(a: Value, b: Value): Value;
  squareRoot(a: Value): Value;
  negate(a: Value): Value;
  /** `a`, or 0 where it is subnormal: decaying state would otherwise stay subnormal for ever, which CPUs are slow at. */
  flush(a: Value): Value;
}

/** What an update of one weight reads. */
export interface UpdateInputs<Value> {
  readonly weight: Value;
  readonly gradient: Value;
  /** In the order of the rule's `state`. */
  readonly state: readonly Value[];
  /** One of the rule's `scalars`. */
  readonly scalar: (name: string) => Value;
}

export interface UpdateOutputs<Value> {
  readonly weight: Value;
  readonly state: readonly Value[];
}

/** One optimizer's formula: the only place where it is written down. */
export interface UpdateRule {
  /** The values kept for each weight between steps, zero at first. */
  readonly state: readonly string[];
  /** Numbers that are the same for all weights, from the step (the first is 1) and its learning rate, in float64. */
  readonly scalars: Readonly<Record<string, (step: number, learningRate: number) => number>>;
  update<Value>(arithmetic: Arithmetic<Value>, inputs: UpdateInputs<Value>): UpdateOutputs<Value>;
}

export function updateRule(spec: OptimizerSpec): UpdateRule {
  switch (spec.name) {
    case "sgd":
      return sgdRule(spec);
    case "adam":
    case "adamw":
      return adamRule(spec);
  }
}

/** torch.optim.SGD: v = momentum v + (1 - dampening) g, where the first step takes v = g; w = w - lr v. */
function sgdRule({ momentum, dampening, nesterov, weightDecay, maximize }: SgdSpec): UpdateRule {
  return {
    state: momentum === 0 ? [] : ["momentumBuffer"],
    scalars: {
      learningRate: (_, learningRate) => learningRate,
      weightDecay: () => weightDecay,
      momentum: () => momentum,
      undamped: (step) => (step === 1 ? 1 : 1 - dampening),
    },
    update({ add, subtract, multiply, negate, flush }, { weight, gradient, state: [previous], scalar }) {
      let direction = maximize ? negate(gradient) : gradient;
      if (weightDecay !== 0) direction = add(direction, multiply(scalar("weightDecay"), weight));
      const descend = (along: typeof weight) => subtract(weight, multiply(scalar("learningRate"), along));
      if (previous === undefined) return { weight: descend(direction), state: [] };
      const buffer = flush(add(multiply(scalar("momentum"), previous), multiply(scalar("undamped"), direction)));
      const along = nesterov ? add(direction, multiply(scalar("momentum"), buffer)) : buffer;
      return { weight: descend(along), state: [buffer] };
    },
  };
}

/**
 * torch.optim.Adam and AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019; Reddi et al. 2018 for amsgrad):
 * m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g²; w = w - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
 */
function adamRule({ name, beta1, beta2, epsilon, weightDecay, amsgrad, maximize }: AdamSpec): UpdateRule {
  const decoupled = name === "adamw";
  return {
    state: amsgrad ? ["firstMoment", "secondMoment", "largestSecondMoment"] : ["firstMoment", "secondMoment"],
    scalars: {
      stepSize: (step, learningRate) => learningRate / (1 - integerPower(beta1, step)),
      secondMomentCorrection: (step) => Math.sqrt(1 - integerPower(beta2, step)),
      beta1: () => beta1,
      beta1Complement: () => 1 - beta1,
      beta2: () => beta2,
      beta2Complement: () => 1 - beta2,
      epsilon: () => epsilon,
      weightDecay: () => weightDecay,
      kept: (_, learningRate) => 1 - learningRate * weightDecay,
    },
    update({ add, subtract, multiply, divide, maximum, squareRoot, negate, flush }, inputs) {
      const { scalar } = inputs;
      const [previousFirst = inputs.weight, previousSecond = inputs.weight, previousLargest] = inputs.state;
      let { weight, gradient } = inputs;
      if (maximize) gradient = negate(gradient);
      if (weightDecay !== 0) {
        if (decoupled) weight = multiply(weight, scalar("kept"));
        else gradient = add(gradient, multiply(scalar("weightDecay"), weight));
      }
      const first = flush(add(multiply(scalar("beta1"), previousFirst), multiply(scalar("beta1Complement"), gradient)));
      const second = flush(
        add(
          multiply(scalar("beta2"), previousSecond),
          multiply(multiply(scalar("beta2Complement"), gradient), gradient),
        ),
      );
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

/** base ** exponent by squaring: engines differ in the last bits of Math.pow, and replicas must not. */
function integerPower(base: number, exponent: number): number {
  let power = 1;
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power *= square;
    square *= square;
  }
  return power;
}

/** One array of an optimizer's state: its name and its length in float32 values. */
export interface StateArray {
  readonly name: string;
  readonly length: number;
}

/** The arrays of state for `length` weights, which every implementation keeps in this order. */
export function stateLayout(spec: OptimizerSpec, length: number): StateArray[] {
  return updateRule(spec).state.map((name) => ({ name, length }));
}

/** @throws Error naming the arrays that the optimizer has if these are others, or the steps if they are no count. */
export function checkState(spec: OptimizerSpec, length: number, state: readonly Float32Array[], steps: number): void {
  const layout = stateLayout(spec, length);
  const fits = layout.every((array, index) => state[index]?.length === array.length) && state.length === layout.length;
  if (!fits) {
    const expected = layout.map(({ name, length }) => `${name} [${length}]`).join(", ");
    const got = state.map((array) => `[${array.length}]`).join(", ");
    throw new Error(
      `The state of ${spec.name} is ${expected || "empty"}; the given arrays have the lengths ${got || "of none"}.`,
    );
  }
  if (!Number.isSafeInteger(steps) || steps < 0)
    throw new Error(`The steps that ${spec.name} has taken must be a count; they are ${steps}.`);
}

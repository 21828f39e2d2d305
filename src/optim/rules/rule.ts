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
  absolute(a: Value): Value;
  /** 1, -1, or 0 for zeros and NaN. */
  sign(a: Value): Value;
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

/**
 * A number that is the same for all weights, from the step (the first is 1), its learning rate, and its momentum, which
 * a schedule may change as it does the learning rate (`momentumOf`), in float64.
 */
export type RuleScalar = (step: number, learningRate: number, momentum: number) => number;
export type RuleScalars = Readonly<Record<string, RuleScalar>>;

/** One optimizer's formula: the only place where it is written down. */
export interface UpdateRule {
  /** The values kept for each weight between steps, zero at first. */
  readonly state: readonly string[];
  readonly scalars: RuleScalars;
  update<Value>(arithmetic: Arithmetic<Value>, inputs: UpdateInputs<Value>): UpdateOutputs<Value>;
}

/** The direction to descend along: the gradient, or its negative to maximize, with weight decay added to it. */
export function descentDirection<Value>(
  { add, multiply, negate }: Arithmetic<Value>,
  { weight, gradient, scalar }: UpdateInputs<Value>,
  { weightDecay, maximize }: { readonly weightDecay: number; readonly maximize: boolean },
): Value {
  const direction = maximize ? negate(gradient) : gradient;
  return weightDecay === 0 ? direction : add(direction, multiply(scalar("weightDecay"), weight));
}

/** An average that keeps the part `scalar(kept)` of what it was and takes `scalar(taken)` of a new value. */
export function movingAverage<Value>(
  { add, multiply, flush }: Arithmetic<Value>,
  { scalar }: UpdateInputs<Value>,
  previous: Value,
  value: Value,
  kept: string,
  taken: string,
): Value {
  return flush(add(multiply(scalar(kept), previous), multiply(scalar(taken), value)));
}

/** A moving average of squares, rounded as PyTorch rounds it: (taken * value) * value. */
export function movingSquare<Value>(
  { add, multiply, flush }: Arithmetic<Value>,
  { scalar }: UpdateInputs<Value>,
  previous: Value,
  value: Value,
  kept: string,
  taken: string,
): Value {
  return flush(add(multiply(scalar(kept), previous), multiply(multiply(scalar(taken), value), value)));
}

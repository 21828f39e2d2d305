import { expect, test } from "vitest";
import { OffloadedOptimizer } from "./offloaded";
import type { Arithmetic } from "./rules/rule";
import {
  adadelta,
  adagrad,
  adam,
  adamax,
  adamw,
  lion,
  momentumOf,
  nadam,
  type OptimizerSpec,
  optimizerNames,
  parseOptimizerSpec,
  radam,
  rmsprop,
  sgd,
} from "./spec";
import { stateLayout, updateRule } from "./updateRule";

/** Reproducible values in (-1, 1), some of them zero. */
function values(length: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % 17 === 0 ? 0 : (state / 2 ** 31 - 1) ** 3;
  });
}

const float32: Arithmetic<number> = {
  add: (a, b) => Math.fround(a + b),
  subtract: (a, b) => Math.fround(a - b),
  multiply: (a, b) => Math.fround(a * b),
  divide: (a, b) => Math.fround(a / b),
  maximum: Math.max,
  squareRoot: (a) => Math.fround(Math.sqrt(a)),
  negate: (a) => -a,
  absolute: Math.abs,
  sign: (a) => (a > 0 ? 1 : a < 0 ? -1 : 0),
  flush: (a) => (Math.abs(a) < 2 ** -126 ? 0 : a),
};

/** The rule in JavaScript's own arithmetic, rounded to float32 after every operation. */
function referenceStep(
  spec: OptimizerSpec,
  step: number,
  learningRate: number,
  weights: Float32Array,
  gradients: Float32Array,
  state: Float32Array[],
) {
  const rule = updateRule(spec);
  for (let i = 0; i < weights.length; i++) {
    const updated = rule.update(float32, {
      weight: weights[i]!,
      gradient: gradients[i]!,
      state: state.map((array) => array[i]!),
      scalar: (name) => Math.fround(rule.scalars[name]!(step, learningRate, momentumOf(spec) ?? 0)),
    });
    weights[i] = updated.weight;
    updated.state.forEach((value, array) => {
      state[array]![i] = value;
    });
  }
}

const specs: [string, OptimizerSpec][] = [
  ["sgd", sgd({ learningRate: 0.1 })],
  ["sgd with weight decay, maximizing", sgd({ learningRate: 0.1, weightDecay: 0.01, maximize: true })],
  ["sgd with momentum and dampening", sgd({ learningRate: 0.1, momentum: 0.9, dampening: 0.3 })],
  ["sgd with nesterov", sgd({ learningRate: 0.1, momentum: 0.9, nesterov: true, weightDecay: 1e-4 })],
  ["adam", adam({ weightDecay: 0.01 })],
  ["adam with amsgrad, maximizing", adam({ amsgrad: true, maximize: true })],
  ["adamw", adamw({ learningRate: 0.01 })],
  ["nadam", nadam({ weightDecay: 0.01 })],
  ["radam", radam()],
  ["adamax", adamax({ maximize: true })],
  ["adagrad", adagrad({ initialAccumulatorValue: 0.1, learningRateDecay: 0.1 })],
  ["adadelta", adadelta()],
  ["rmsprop, centered, with momentum", rmsprop({ momentum: 0.9, centered: true })],
  ["lion", lion({ weightDecay: 0.1 })],
];

test.each(optimizerNames)("%s maximizes as it minimizes the negative, to the bit", (name) => {
  const steps = (maximize: boolean) => {
    const optimizer = new OffloadedOptimizer(parseOptimizerSpec({ name, weightDecay: 0.01, maximize }), 100);
    const weights = values(100, 1);
    for (let step = 1; step <= 5; step++) {
      const gradients = values(100, 10 + step);
      optimizer.step(weights, maximize ? gradients.map((value) => -value) : gradients);
    }
    return weights;
  };
  expect(steps(true)).toEqual(steps(false));
});

for (const [name, spec] of specs) {
  test(`${name}: the WASM update has the bits of float32 arithmetic in JavaScript`, () => {
    for (const length of [0, 1, 3, 4, 7, 8191, 8192, 8193, 20_001]) {
      const optimizer = new OffloadedOptimizer(spec, length);
      const weights = values(length, 1);
      const expected = weights.slice();
      const expectedState = updateRule(spec).state.map(() => new Float32Array(length));
      for (let step = 1; step <= 3; step++) {
        const gradients = values(length, 10 + step);
        optimizer.step(weights, gradients, 0.01 * step);
        referenceStep(spec, step, 0.01 * step, expected, gradients, expectedState);
      }
      expect(weights).toEqual(expected);
      expect(optimizer.state()).toEqual(expectedState);
      expect(optimizer.steps).toBe(3);
    }
  });

  test(`${name}: a state that moves to another optimizer continues with the same bits`, () => {
    const length = 100;
    const gradients = [values(length, 2), values(length, 3), values(length, 4)] as const;
    const whole = new OffloadedOptimizer(spec, length);
    const weights = values(length, 1);
    const moved = weights.slice();
    for (const gradient of gradients) whole.step(weights, gradient);
    const before = new OffloadedOptimizer(spec, length);
    before.step(moved, gradients[0]);
    before.step(moved, gradients[1]);
    const after = new OffloadedOptimizer(spec, length);
    after.loadState(
      before.state().map((array) => array.slice()),
      before.steps,
    );
    after.step(moved, gradients[2]);
    expect(moved).toEqual(weights);
    expect(after.state().map((array) => array.length)).toEqual(stateLayout(spec, length).map((array) => array.length));
  });
}

test("sgd with momentum follows its formula, computed by hand", () => {
  const optimizer = new OffloadedOptimizer(sgd({ learningRate: 0.5, momentum: 0.5, weightDecay: 0.25 }), 2);
  const weights = Float32Array.of(1, -2);
  optimizer.step(weights, Float32Array.of(1, 0));
  // g + 0.25 w = [1.25, -0.5], which is the first buffer
  expect([...weights]).toEqual([0.375, -1.75]);
  optimizer.step(weights, Float32Array.of(0, 1));
  // buffer = 0.5 [1.25, -0.5] + [0.09375, 0.5625] = [0.71875, 0.3125]
  expect([...weights]).toEqual([0.015625, -1.90625]);
});

test("dampening doesn't touch the first step, as in PyTorch", () => {
  const optimizer = new OffloadedOptimizer(sgd({ learningRate: 1, momentum: 0.5, dampening: 0.5 }), 1);
  const weights = Float32Array.of(0);
  optimizer.step(weights, Float32Array.of(1));
  expect([...weights]).toEqual([-1]);
  optimizer.step(weights, Float32Array.of(1));
  expect([...weights]).toEqual([-2]);
});

test("adam's first step moves each weight by the learning rate against its gradient's sign", () => {
  const optimizer = new OffloadedOptimizer(adam({ learningRate: 0.01 }), 3);
  const weights = Float32Array.of(1, 1, 1);
  optimizer.step(weights, Float32Array.of(5, -0.001, 0));
  expect(weights[0]).toBeCloseTo(0.99, 6);
  expect(weights[1]).toBeCloseTo(1.01, 6);
  expect(weights[2]).toBe(1);
});

test("adamw follows its formula in float64 over 100 steps", () => {
  const spec = adamw({ learningRate: 0.01, weightDecay: 0.1 });
  const optimizer = new OffloadedOptimizer(spec, 1);
  const weights = Float32Array.of(0.7);
  let [w, m, v] = [0.7, 0, 0];
  for (let t = 1; t <= 100; t++) {
    const gradient = Math.fround(Math.cos(t) + 0.5);
    optimizer.step(weights, Float32Array.of(gradient));
    w -= 0.01 * 0.1 * w;
    m = 0.9 * m + 0.1 * gradient;
    v = 0.999 * v + 0.001 * gradient ** 2;
    w -= (0.01 * (m / (1 - 0.9 ** t))) / (Math.sqrt(v / (1 - 0.999 ** t)) + 1e-8);
  }
  // 100 steps, each rounding a weight below 1 to half of 2^-24 a few times
  expect(Math.abs(weights[0]! - w)).toBeLessThan(1e-5);
});

test("values behind the optimizer's length stay as they are", () => {
  const optimizer = new OffloadedOptimizer(sgd({ learningRate: 1 }), 2);
  const weights = Float32Array.of(1, 1, 7);
  optimizer.step(weights, Float32Array.of(1, 1, 100, 100));
  expect([...weights]).toEqual([0, 0, 7]);
});

test("a NaN in a gradient reaches the weight and the state", () => {
  const optimizer = new OffloadedOptimizer(adam(), 1);
  const weights = Float32Array.of(1);
  optimizer.step(weights, Float32Array.of(Number.NaN));
  expect(weights[0]).toBeNaN();
  expect(optimizer.state()[0]![0]).toBeNaN();
});

test("state that has decayed below the normal numbers is zero", () => {
  const optimizer = new OffloadedOptimizer(sgd({ momentum: 0.5 }), 1);
  optimizer.loadState([Float32Array.of(2 ** -126)], 1);
  optimizer.step(Float32Array.of(0), Float32Array.of(0));
  expect(optimizer.state()[0]![0]).toBe(0);
});

test("arrays that are too short are refused with the lengths", () => {
  const optimizer = new OffloadedOptimizer(sgd(), 4);
  expect(() => optimizer.step(new Float32Array(3), new Float32Array(4))).toThrow(
    "The optimizer sgd was made for 4 weights; it was given 3 weights and 4 gradients.",
  );
});

test("a state of another layout is refused with the layout", () => {
  const optimizer = new OffloadedOptimizer(adam(), 4);
  expect(() => optimizer.loadState([new Float32Array(4)], 1)).toThrow(
    "The state of adam is firstMoment [4], secondMoment [4]; the given arrays have the lengths [4].",
  );
  expect(() => optimizer.loadState([new Float32Array(4), new Float32Array(4)], 0.5)).toThrow(
    "The steps that adam has taken must be a count; they are 0.5.",
  );
});

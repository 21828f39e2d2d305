import { expect, test } from "vitest";
import { add, FlatParameters, mul, sum, type Tensor, tensor } from "../tensor/index";
import {
  Adam,
  clipGradNorm_,
  clipGradValue_,
  FlatOptimizer,
  GradScaler,
  MovingAverage,
  NAdam,
  OffloadedOptimizer,
  OneCycleLR,
  Optimizer,
  type OptimizerState,
  optimizerNames,
  parseOptimizerSpec,
  SGD,
} from "./index";

const leaf = (...values: number[]): Tensor => tensor(values, { requiresGrad: true });

/** Gives parameters the gradients that are asked for. */
function backward(parameter: Tensor, ...gradients: number[]): void {
  sum(mul(parameter, tensor(gradients))).backward();
}

test.each(optimizerNames)("%s takes the same steps on the GPU and offloaded", async (name) => {
  const spec = parseOptimizerSpec({ name, weightDecay: 0.01 });
  const parameter = leaf(0.7, -1.2, 0.05, 2.5, 3);
  const flat = new FlatParameters([["parameter", parameter]]);
  const onGpu = new FlatOptimizer(spec, flat);
  const onCpu = new OffloadedOptimizer(spec, flat.layout.length);
  const weights = await flat.readWeights();
  for (let step = 1; step <= 8; step++) {
    const gradients = [0.1, -0.3, 0.7, 0, -2].map((value, i) => value * (((step * 7 + i * 5) % 9) - 3));
    flat.zeroGradients();
    backward(parameter, ...gradients);
    onCpu.step(weights, await flat.readGradients());
    onGpu.step();
  }
  // The GPU's divisions and square roots may be off by a few units in the last place.
  const got = await flat.readWeights();
  for (const [i, want] of weights.entries()) expect(Math.abs(got[i]! - want), `weight ${i}`).toBeLessThan(4e-6);
  expect(await Promise.all((await onGpu.readState()).map(({ length }) => length))).toEqual(
    onCpu.state().map(({ length }) => length),
  );
});

/** Weights after 12 steps of OneCycleLR, which cycles the momentum too, as PyTorch 1.13 computes them in float64. */
test.each([
  ["SGD", (of: Tensor) => new SGD([of], { momentum: 0.9 }), [0.68172859, -1.04405209, -0.19200559, 2.32273642]],
  ["Adam", (of: Tensor) => new Adam([of]), [0.70925706, -1.19585276, -0.01236184, 2.46962995]],
  ["NAdam", (of: Tensor) => new NAdam([of]), [0.66799627, -1.22816143, -0.03028558, 2.49112849]],
] as const)("%s takes PyTorch's steps with a momentum that a schedule cycles", async (_, make, expected) => {
  const parameter = leaf(0.7, -1.2, 0.05, 2.5);
  const optimizer = make(parameter);
  const scheduler = new OneCycleLR(optimizer, { maxLearningRate: 0.1, totalSteps: 12 });
  for (let step = 1; step <= 12; step++) {
    if (step > 1) scheduler.step();
    optimizer.zeroGrad();
    backward(parameter, ...[0, 1, 2, 3].map((i) => ((((step * 7 + i * 13) % 19) - 9) / 10) * ((i + 1) / 2)));
    optimizer.step();
  }
  const got = await parameter.data();
  for (const [i, want] of expected.entries()) expect(Math.abs(got[i]! - want), `weight ${i}`).toBeLessThan(5e-6);
});

test("a closed gate leaves weights and state as they are, to the bit, and an open one changes nothing about a step", async () => {
  const make = () => {
    const parameter = leaf(0.7, -1.2, 0.05, 2.5, 3);
    const flat = new FlatParameters([["parameter", parameter]]);
    return { parameter, flat, optimizer: new FlatOptimizer(parseOptimizerSpec({ name: "adam" }), flat) };
  };
  const [gated, plain] = [make(), make()];
  for (const { parameter } of [gated, plain]) backward(parameter, 1, 2, 3, 4, 5);
  plain.optimizer.step();
  const gate = tensor([1]);
  gated.optimizer.step(undefined, gate);
  const state = async ({ flat, optimizer }: typeof gated) => [
    await flat.readWeights(),
    ...(await optimizer.readState()),
  ];
  const after = await state(plain);
  expect(await state(gated)).toEqual(after);
  gate.write([0]);
  backward(gated.parameter, 1, Number.NaN, Infinity, 4, 5);
  gated.optimizer.step(undefined, gate);
  expect(await state(gated)).toEqual(after);
  gated.optimizer.takeBack();
  expect(gated.optimizer.steps).toBe(1);
  expect(() => gated.optimizer.step(undefined, tensor([1, 1]))).toThrow(
    "adam: the gate has shape [2]; expected one element",
  );
});

test.each(optimizerNames)("%s goes on from its state, each group with its own options", async (name) => {
  const spec = (learningRate: number) => parseOptimizerSpec({ name, learningRate });
  const make = () => {
    const parameters = [leaf(0.7, -1.2, 0.05), leaf(3)] as const;
    const optimizer = new Optimizer([
      { parameters: [parameters[0]], spec: spec(0.1) },
      { parameters: [parameters[1]], spec: spec(0.01) },
    ]);
    const step = () => {
      optimizer.zeroGrad();
      sum(add(sum(mul(parameters[0], parameters[0])), mul(parameters[1], parameters[1]))).backward();
      optimizer.step();
    };
    return { parameters, optimizer, step, values: () => Promise.all(parameters.map((of) => of.data())) };
  };
  const [whole, resumed] = [make(), make()];
  for (let i = 0; i < 3; i++) whole.step();
  const state: OptimizerState = await whole.optimizer.stateDict();
  expect(state.groups.map(({ learningRate }) => learningRate)).toEqual([0.1, 0.01]);
  const weights = await whole.values();
  for (const [i, parameter] of resumed.parameters.entries()) parameter.write(weights[i]!);
  resumed.optimizer.loadStateDict(state);
  for (const of of [whole, resumed]) of.step();
  const [after, expected] = [await resumed.values(), await whole.values()];
  expect(after).toEqual(expected);
  expect(after).not.toEqual(weights);
});

test("gradients are clipped by their common norm", async () => {
  const [a, b] = [leaf(0, 0), leaf(0)];
  backward(a, 3, 0);
  backward(b, 4);
  const norm = clipGradNorm_([a, b], 1);
  expect(await norm.item()).toBe(5);
  const [first, second] = await Promise.all([a.grad!.data(), b.grad!.data()]);
  expect(first[0]).toBeCloseTo(0.6, 6);
  expect(second[0]).toBeCloseTo(0.8, 6);
  expect(await clipGradNorm_([a, b], 10, { normType: Infinity }).item()).toBeCloseTo(0.8, 6);
  expect((await b.grad!.data())[0]).toBeCloseTo(0.8, 6);
});

test("clipping flat gradients leaves the slots behind them", async () => {
  const parameter = leaf(0, 0);
  const flat = new FlatParameters([["parameter", parameter]], { extra: 1 });
  flat.extra.write([7]);
  backward(parameter, 6, 8);
  expect(await clipGradNorm_(flat, 5).item()).toBe(10);
  const gradients = await flat.readGradients();
  expect(gradients[0]).toBeCloseTo(3, 5);
  expect(gradients[1]).toBeCloseTo(4, 5);
  expect(gradients.at(-1)).toBe(7);
});

test("gradients are clipped by value", async () => {
  const parameter = leaf(0, 0, 0);
  backward(parameter, -2, 0.5, 3);
  clipGradValue_([parameter], 1);
  expect(await parameter.grad!.array()).toEqual([-1, 0.5, 1]);
});

test("a moving average follows the weights, stands in for them, and gives them back", async () => {
  const parameter = leaf(4);
  const average = new MovingAverage([parameter], 0.75);
  average.update();
  parameter.write([8]);
  average.update();
  parameter.write([0]);
  // 4 + (8 - 4) / 4
  expect(await average.averages[0]!.array()).toEqual([5]);
  expect(await average.during(() => parameter.array())).toEqual([5]);
  expect(await parameter.array()).toEqual([0]);
});

test("a scaler skips steps that overflow, and grows and backs off as PyTorch's", async () => {
  const parameter = leaf(1);
  const optimizer = new SGD([parameter], { learningRate: 0.5 });
  const scaler = new GradScaler({ initScale: 8, growthInterval: 2 });
  const step = async (gradient: number) => {
    optimizer.zeroGrad();
    scaler.scale(sum(mul(parameter, gradient))).backward();
    const taken = await scaler.step(optimizer);
    scaler.update();
    return taken;
  };
  expect(await step(1)).toBe(true);
  expect(await parameter.array()).toEqual([0.5]);
  expect(await step(Infinity)).toBe(false);
  expect(await parameter.array()).toEqual([0.5]);
  expect(scaler.getScale()).toBe(4);
  await step(1);
  await step(0);
  expect(await parameter.array()).toEqual([0]);
  expect(scaler.getScale()).toBe(8);
});

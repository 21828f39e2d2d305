import { expect, test } from "vitest";
import { manualSeed, type Tensor, tensor } from "../tensor/index";
import {
  AvgPool2d,
  BatchNorm2d,
  Conv2d,
  Flatten,
  GELU,
  GroupNorm,
  LayerNorm,
  Linear,
  MaxPool2d,
  Module,
  ModuleList,
  parameter,
  ReLU,
  Sequential,
} from "./index";

const cnn = () =>
  new Sequential(
    new Conv2d(1, 8, 3, { padding: 1 }),
    new BatchNorm2d(8),
    new ReLU(),
    new MaxPool2d(2),
    new Conv2d(8, 16, [3, 5], { stride: 2, bias: false }),
    new GroupNorm(4, 16),
    new GELU(),
    new AvgPool2d(2),
    new Flatten(),
    new Linear(96, 10),
  );

/** A module of its own kind, with a parameter that two names share. */
class Tied extends Module {
  readonly tokenTable = parameter(tensor(new Float32Array(6), { shape: [3, 2] }));
  readonly blocks = new ModuleList([new Linear(2, 2), new Linear(2, 2, { bias: false })]);
  readonly output: { weight: Tensor };
  readonly outputWeight: Tensor;

  constructor() {
    super();
    this.outputWeight = this.tokenTable;
    this.output = { weight: this.tokenTable };
  }

  forward(input: Tensor): Tensor {
    return input;
  }
}

test("the state dict has PyTorch's keys and layouts, in the order of the layers", () => {
  expect([...cnn().stateDict()].map(([name, { shape }]) => [name, shape])).toEqual([
    ["0.weight", [8, 1, 3, 3]],
    ["0.bias", [8]],
    ["1.weight", [8]],
    ["1.bias", [8]],
    ["1.running_mean", [8]],
    ["1.running_var", [8]],
    ["1.num_batches_tracked", []],
    ["4.weight", [16, 8, 3, 5]],
    ["5.weight", [16]],
    ["5.bias", [16]],
    ["9.weight", [10, 96]],
    ["9.bias", [10]],
  ]);
});

test("buffers aren't parameters", () => {
  const model = cnn();
  expect(model.namedBuffers().map(([name]) => name)).toEqual([
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
  ]);
  expect(model.namedParameters()).toHaveLength(9);
  expect(model.parameters().every(({ requiresGrad, isLeaf }) => requiresGrad && isLeaf)).toBe(true);
  expect(model.buffers().some(({ requiresGrad }) => requiresGrad)).toBe(false);
});

test("a shared parameter is listed once, and stands in the state dict under both names", () => {
  const model = new Tied();
  expect(model.namedParameters().map(([name]) => name)).toEqual([
    "token_table",
    "blocks.0.weight",
    "blocks.0.bias",
    "blocks.1.weight",
  ]);
  expect([...model.stateDict().keys()]).toContain("output_weight");
});

test("modes and changes reach every module, children first", () => {
  const model = new Sequential(new Sequential(new ReLU()), new Flatten());
  expect(model.namedModules().map(([name]) => name)).toEqual(["", "0", "0.0", "1"]);
  model.eval();
  expect(model.modules().map(({ training }) => training)).toEqual([false, false, false, false]);
  model.train();
  expect(model.modules().map(({ training }) => training)).toEqual([true, true, true, true]);
  const order: string[] = [];
  model.apply((module) => order.push(module.constructor.name));
  expect(order).toEqual(["Flatten", "ReLU", "Sequential", "Sequential"]);
});

test("freezing a part of a model leaves it in the state dict", () => {
  const model = cnn();
  model.requiresGrad_(false);
  expect(model.parameters().some(({ requiresGrad }) => requiresGrad)).toBe(false);
  expect(model.namedParameters()).toHaveLength(9);
});

test("a state that doesn't fit is refused with every difference named", () => {
  const model = new Sequential(new Linear(2, 3));
  const value = (...shape: number[]) => ({ shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) });
  expect(() =>
    model.loadStateDict([
      ["0.weight", value(2, 3)],
      ["1.weight", value(1)],
    ]),
  ).toThrow(
    "The state doesn't fit Sequential: 0.bias is missing; 1.weight is unexpected; 0.weight has the shape [2, 3] instead of [3, 2].",
  );
  expect(model.loadStateDict([["1.weight", value(1)]], { strict: false })).toEqual({
    missing: ["0.weight", "0.bias"],
    unexpected: ["1.weight"],
  });
});

test("impossible layers are refused with a sentence", () => {
  expect(() => new Conv2d(3, 8, 3, { groups: 2 })).toThrow(
    "Conv2d has 3 input and 8 output channels in 2 groups; expected multiples of the groups.",
  );
  expect(() => new GroupNorm(3, 8)).toThrow("GroupNorm has 8 channels in 3 groups");
  expect(() => new LayerNorm(4).forward(tensor(new Float32Array(6), { shape: [2, 3] }))).toThrow(
    "layerNorm: the input ends in [3]; expected [4].",
  );
  expect(() => new BatchNorm2d(4).forward(tensor(new Float32Array(8), { shape: [2, 4] }))).toThrow(
    "BatchNorm2d: the input has the shape [2, 4]; expected 4 dimensions.",
  );
});

test("layers record shapes as PyTorch has them", () => {
  manualSeed(1);
  const output = cnn().forward(tensor(new Float32Array(2 * 784), { shape: [2, 1, 28, 28] }));
  expect(output.shape).toEqual([2, 10]);
});

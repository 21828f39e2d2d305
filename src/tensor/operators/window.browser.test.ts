import { describe, expect, test } from "vitest";
import {
  avgPool2d,
  batchNorm,
  conv2d,
  flush,
  grad,
  groupNorm,
  layerNorm,
  maxPool2d,
  mul,
  sum,
  type Tensor,
  tensor,
} from "../index";

/** Reproducible values in [-1, 1), no two of them equal. */
function values(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => (((i + 1) * 0.6180339887 + seed * 0.41421356) % 1) * 2 - 1);
}

const leaf = (shape: number[], seed: number) =>
  tensor(
    values(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
    { shape, requiresGrad: true },
  );

/** The gradient of sum(f(inputs)^3) with respect to each input: f's own curvature and that of the cube. */
function gradients(f: (...inputs: Tensor[]) => Tensor, inputs: readonly Tensor[]): Tensor[] {
  const output = f(...inputs);
  const all = grad(sum(mul(mul(output, output), output)), inputs, { createGraph: true });
  return all.map((gradient, i) => {
    if (!gradient) throw new Error(`Input ${i} has no gradient.`);
    return gradient;
  });
}

const cases: [name: string, f: (...inputs: Tensor[]) => Tensor, shapes: number[][]][] = [
  [
    "conv2d",
    (x, w, b) => conv2d(x!, w!, b!, { stride: [2, 1], padding: 1, dilation: [1, 2], groups: 2 }),
    [[2, 4, 5, 6], [6, 2, 3, 2], [6]],
  ],
  ["maxPool2d", (x) => maxPool2d(x!, 3, { stride: 2, padding: 1 }), [[1, 2, 6, 5]]],
  ["maxPool2d without overlap", (x) => maxPool2d(x!, [2, 1], { stride: [3, 2] }), [[2, 2, 8, 5]]],
  ["avgPool2d", (x) => avgPool2d(x!, [3, 2], { stride: 2, padding: 1, countIncludePad: false }), [[1, 2, 6, 5]]],
  ["groupNorm", (x, w, b) => groupNorm(x!, 2, { weight: w!, bias: b! }), [[2, 4, 3], [4], [4]]],
  [
    "batchNorm",
    (x, w, b) => batchNorm(x!, null, null, { weight: w!, bias: b!, training: true }),
    [[3, 2, 4], [2], [2]],
  ],
  ["layerNorm", (x, w, b) => layerNorm(x!, [5], { weight: w!, bias: b! }), [[3, 5], [5], [5]]],
];

describe("second derivatives", () => {
  test.each(cases)("%s's agree with differences of its first", async (_, f, shapes) => {
    const inputs = shapes.map((shape, i) => leaf(shape, i));
    const directions = shapes.map((shape, i) => leaf(shape, i + 10).detach());
    const first = gradients(f, inputs);
    const along = first.map((gradient, i) => sum(mul(gradient, directions[i]!))).reduce((a, b) => a.add(b));
    const second = grad(along, inputs).map((tensor) => tensor!.keep());
    await flush();

    // The second derivatives are symmetric, so their product with the directions is the change of the first.
    const distance = 1 / 64;
    const moved = (sign: number) => {
      const there = inputs.map((input, i) =>
        input
          .detach()
          .add(mul(directions[i]!, sign * distance))
          .keep(),
      );
      for (const tensor of there) tensor.requiresGrad = true;
      return gradients(f, there).map((gradient) => gradient.keep());
    };
    const [ahead, behind] = [moved(1), moved(-1)];
    for (const [i, tensor] of second.entries()) {
      const [actual, plus, minus] = [await tensor.data(), await ahead[i]!.data(), await behind[i]!.data()];
      const expected = Array.from(plus, (value, at) => (value - minus[at]!) / (2 * distance));
      const largest = Math.max(...expected.map(Math.abs));
      expect(largest, "the curvature").toBeGreaterThan(0.1);
      // The third derivative times distance squared, and float32's rounding over twice the distance.
      for (const [at, value] of expected.entries())
        expect(Math.abs(actual[at]! - value), `input ${i} at ${at}`).toBeLessThan(0.01 * largest);
    }
  });
});

test("a convolution and its gradients have the same bits each time", async () => {
  const run = async () => {
    const [x, w] = [leaf([3, 5, 17, 19], 1), leaf([9, 5, 3, 3], 2)];
    const output = conv2d(x, w, null, { padding: 1 });
    sum(mul(output, output)).backward();
    return [await output.keep().data(), await x.grad!.data(), await w.grad!.data()];
  };
  expect(await run()).toEqual(await run());
});

test("a convolution with many slices of pixels sums them all", async () => {
  const x = tensor(new Float32Array(4 * 2 * 40 * 40).fill(1), { shape: [4, 2, 40, 40] });
  const w = leaf([3, 2, 3, 3], 1);
  sum(conv2d(x, w)).backward();
  // Each tap lies on a 1 for each of 4 * 38 * 38 pixels; whole numbers below 2^24 are exact.
  expect([...(await w.grad!.data())]).toEqual(new Array(54).fill(4 * 38 * 38));
});

test("the gradient of pools that leave the last rows out is zero there", async () => {
  const input = leaf([1, 1, 5, 5], 1);
  sum(maxPool2d(input, 2)).backward();
  const gradient = await input.grad!.data();
  expect([...gradient].filter((value) => value !== 0)).toEqual([1, 1, 1, 1]);
  for (let i = 0; i < 5; i++) expect([gradient[20 + i], gradient[5 * i + 4]]).toEqual([0, 0]);
});

test("max pooling lets a NaN through", async () => {
  const input = tensor([[[[1, Number.NaN, 3, 4]]]]);
  expect(await maxPool2d(input, [1, 2]).array()).toEqual([[[[Number.NaN, 4]]]]);
});

test("norms keep their precision far from zero", async () => {
  const input = tensor(
    Float32Array.from({ length: 512 }, (_, i) => 4096 + (i % 2)),
    { shape: [1, 2, 256] },
  );
  const output = await groupNorm(input, 1, { eps: 0 }).data();
  // Mean 4096.5 and deviation 0.5: the sum of squares alone would take 2^24 * 512 out of float32's reach.
  for (const [i, value] of output.entries()) expect(value).toBeCloseTo(i % 2 === 0 ? -1 : 1, 2);
});

test.each<[string, () => Tensor, string]>([
  [
    "a weight for other channels",
    () => conv2d(leaf([1, 3, 5, 5], 1), leaf([4, 2, 3, 3], 2)),
    "conv2d: the input has 3 channels, the weight shape [4, 2, 3, 3] and groups is 1; expected",
  ],
  [
    "a window larger than the input",
    () => conv2d(leaf([1, 1, 2, 5], 1), leaf([1, 1, 3, 3], 2)),
    "conv2d: the window spans 3 of a padded input of 2; expected an input at least as large as the window.",
  ],
  [
    "a bias of another length",
    () => conv2d(leaf([1, 1, 5, 5], 1), leaf([2, 1, 3, 3], 2), leaf([3], 3)),
    "conv2d: the bias has shape [3]; expected [2].",
  ],
  [
    "a stride that is no integer",
    () => conv2d(leaf([1, 1, 5, 5], 1), leaf([2, 1, 3, 3], 2), null, { stride: 1.5 }),
    "conv2d: stride is 1.5; expected an integer of at least 1, or two.",
  ],
  [
    '"same" with a stride',
    () => conv2d(leaf([1, 1, 5, 5], 1), leaf([2, 1, 3, 3], 2), null, { stride: 2, padding: "same" }),
    'conv2d: padding is "same" and stride [2, 2]; expected stride 1 with it.',
  ],
  [
    "too much padding for a pool",
    () => maxPool2d(leaf([1, 1, 5, 5], 1), 2, { padding: 2 }),
    "maxPool2d: padding is [2, 2]; expected at most half the window, which spans [2, 2].",
  ],
  [
    "a matrix for a pool",
    () => avgPool2d(leaf([5, 5], 1), 2),
    "avgPool2d: the input is float32[5, 5]; expected floats [N, C, H, W] or [C, H, W].",
  ],
  [
    "groups that don't divide the channels",
    () => groupNorm(leaf([1, 5, 2], 1), 2),
    "groupNorm: groups is 2 for 5 channels; expected a divisor of their number.",
  ],
  [
    "evaluation without running moments",
    () => batchNorm(leaf([2, 3], 1), null, null),
    "batchNorm: runningMean or runningVar is null; expected both where training is false.",
  ],
  [
    "training on a single value",
    () => batchNorm(leaf([1, 3], 1), null, null, { training: true }),
    "batchNorm: the input has shape [1, 3]; expected more than one value for each channel in training.",
  ],
])("refuses %s with a sentence", (_, call, sentence) => {
  expect(call).toThrow(sentence);
});

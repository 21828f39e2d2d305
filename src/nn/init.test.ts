import { expect, test } from "vitest";
import { manualSeed, type Tensor, tensor } from "../tensor/index";
import { Conv2d, init, Linear } from "./index";

/** The values that a tensor was made with or overwritten with, before any device has it. */
function hostValues({ source }: Tensor): number[] {
  if (source.kind !== "storage") throw new Error("The tensor has no storage.");
  const words = source.storage.hostWords;
  if (!words) throw new Error("The tensor's values are on a device.");
  return [...words];
}

const empty = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), { shape });
const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;

test("the same seed gives the same weights, another one others", () => {
  const weights = (seed: number) => {
    manualSeed(seed);
    return hostValues(new Linear(20, 10).weight);
  };
  expect(weights(1)).toEqual(weights(1));
  expect(weights(1)).not.toEqual(weights(2));
});

test("a seed's weights are these", () => {
  manualSeed(0);
  // tests/models.browser.test.ts expects the same ones of a browser.
  expect(hostValues(new Linear(2, 2).weight)).toEqual([
    -0.6324024200439453, 0.4877718985080719, 0.6081147789955139, 0.7011492252349854,
  ]);
  expect(hostValues(init.normal_(empty(4)))).toEqual([
    -0.38316649198532104, -0.24110734462738037, -0.36114302277565, 1.1849241256713867,
  ]);
});

test("two layers draw different weights", () => {
  manualSeed(1);
  expect(hostValues(new Linear(4, 4).weight)).not.toEqual(hostValues(new Linear(4, 4).weight));
});

test("a linear and a convolution layer begin as PyTorch's: uniform within 1 / sqrt(fan in)", () => {
  manualSeed(2);
  for (const [layer, fanIn] of [
    [new Linear(100, 200), 100],
    [new Conv2d(16, 32, 3), 144],
    [new Conv2d(16, 32, 3, { groups: 4 }), 36],
  ] as const) {
    const bound = 1 / Math.sqrt(fanIn);
    const weights = hostValues(layer.weight);
    expect(Math.max(...weights.map(Math.abs))).toBeLessThanOrEqual(bound);
    expect(Math.max(...weights)).toBeGreaterThan(0.99 * bound);
    expect(Math.min(...weights)).toBeLessThan(-0.99 * bound);
    // The mean of n uniform numbers lies within 4 standard errors.
    expect(Math.abs(mean(weights))).toBeLessThan((4 * bound) / Math.sqrt(3 * weights.length));
    expect(Math.max(...hostValues(layer.bias!).map(Math.abs))).toBeLessThanOrEqual(bound);
  }
});

test("normal numbers have the moments of a normal distribution", () => {
  manualSeed(3);
  const values = hostValues(init.normal_(empty(20_001), 2, 3)).map((value) => (value - 2) / 3);
  const moment = (power: number) => mean(values.map((value) => value ** power));
  // Four standard errors of each moment over 20,001 numbers.
  expect(Math.abs(moment(1))).toBeLessThan(4 / Math.sqrt(20_001));
  expect(Math.abs(moment(2) - 1)).toBeLessThan((4 * Math.sqrt(2)) / Math.sqrt(20_001));
  expect(Math.abs(moment(3))).toBeLessThan((4 * Math.sqrt(15)) / Math.sqrt(20_001));
  expect(Math.abs(moment(4) - 3)).toBeLessThan((4 * Math.sqrt(96)) / Math.sqrt(20_001));
});

test("the bounds follow He's and Glorot's formulas", () => {
  manualSeed(4);
  const largest = (tensor: Tensor) => Math.max(...hostValues(tensor).map(Math.abs));
  const he = Math.sqrt(6 / 50);
  expect(largest(init.kaimingUniform_(empty(400, 50), { nonlinearity: "relu" }))).toBeLessThanOrEqual(he);
  expect(largest(init.kaimingUniform_(empty(400, 50), { nonlinearity: "relu" }))).toBeGreaterThan(0.99 * he);
  const glorot = Math.sqrt(6 / 450);
  expect(largest(init.xavierUniform_(empty(400, 50)))).toBeLessThanOrEqual(glorot);
  expect(largest(init.xavierUniform_(empty(400, 50)))).toBeGreaterThan(0.99 * glorot);
});

test("fans count a convolution's window", () => {
  expect(init.calculateFan(empty(8, 4, 3, 5))).toEqual({ fanIn: 60, fanOut: 120 });
  expect(() => init.calculateFan(empty(8))).toThrow("A tensor of shape [8] has no fan-in and fan-out");
});

test("orthogonal matrices have orthogonal rows, or columns, of the gain's length", () => {
  manualSeed(4);
  const wide = hostValues(init.orthogonal_(empty(3, 2, 4), 2));
  const tall = hostValues(init.orthogonal_(empty(6, 2)));
  const product = (values: number[], length: number, at: (vector: number, i: number) => number, a: number, b: number) =>
    Array.from({ length }, (_, i) => values[at(a, i)]! * values[at(b, i)]!).reduce((x, y) => x + y, 0);
  for (let a = 0; a < 3; a++)
    for (let b = 0; b < 3; b++) expect(product(wide, 8, (row, i) => row * 8 + i, a, b)).toBeCloseTo(a === b ? 4 : 0, 6);
  for (let a = 0; a < 2; a++)
    for (let b = 0; b < 2; b++)
      expect(product(tall, 6, (column, i) => i * 2 + column, a, b)).toBeCloseTo(a === b ? 1 : 0, 6);
});

test("truncated normal numbers lie within their bounds", () => {
  manualSeed(5);
  const values = hostValues(init.truncNormal_(empty(1000), 1, 2, -1, 2));
  expect(Math.min(...values)).toBeGreaterThanOrEqual(-1);
  expect(Math.max(...values)).toBeLessThanOrEqual(2);
  expect(() => init.truncNormal_(empty(1), 0, 1, 50, 60)).toThrow("hardly fall between 50 and 60");
});

test("the identity has ones where row and column are the same", () => {
  expect(hostValues(init.eye_(empty(2, 3)))).toEqual([1, 0, 0, 0, 1, 0]);
  expect(() => init.eye_(empty(4))).toThrow("A tensor of shape [4] is no matrix");
});

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import {
  FlatParameters,
  flush,
  matmul,
  readAsComputed,
  registerPostAccumulateGradHook,
  setDefaultDevice,
  sum,
  tensor,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const square = (first: number) => tensor([first, 2, 3, 4], { shape: [2, 2], requiresGrad: true });

test("ranges of gradients are read by one flush, in a submit each", async () => {
  const [a, b] = [square(1), square(5)];
  const flat = new FlatParameters([
    ["a", a],
    ["b", b],
  ]);
  const x = tensor([1, 10], { shape: [1, 2] });
  const step = () => {
    flat.zeroGradients();
    sum(matmul(matmul(x, a), b)).backward();
  };
  step();
  await flush();
  step();
  const reads = [flat.gradientRange(64, 68), flat.gradientRange(0, 4)].map((range) => ({
    tensor: range,
    into: new Float32Array(4),
  }));
  const before = device.stats.submits;
  await Promise.all(readAsComputed(reads));
  expect(device.stats.submits - before).toBeGreaterThanOrEqual(2);
  // b's: (x a) in both columns; a's: x times the row sums of b.
  expect([...reads[0]!.into]).toEqual([31, 31, 42, 42]);
  expect([...reads[1]!.into]).toEqual([7, 7, 70, 70]);
});

test("an array of another length is refused", async () => {
  const a = tensor([1, 2]);
  expect(() => readAsComputed([{ tensor: a, into: new Float32Array(3) }])).toThrow(
    "the array has 3 elements; expected the tensor's 2",
  );
});

test("hooks are called for each leaf that got a gradient, latest use first", () => {
  const [a, b, unused] = [square(1), square(5), square(9)];
  const called: string[] = [];
  const remove = registerPostAccumulateGradHook(a, () => called.push("a"));
  registerPostAccumulateGradHook(b, ({ grad }) => called.push(grad ? "b" : "none"));
  registerPostAccumulateGradHook(unused, () => called.push("unused"));
  sum(matmul(matmul(a, a), b)).backward();
  expect(called).toEqual(["b", "a"]);
  remove();
  sum(matmul(a, b)).backward();
  expect(called).toEqual(["b", "a", "b"]);
});

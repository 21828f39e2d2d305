import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import {
  autocast,
  checkpoint,
  exp,
  flush,
  gelu,
  grad,
  manualSeed,
  mul,
  noGrad,
  rand,
  setDefaultDevice,
  sin,
  sum,
  type Tensor,
  tensor,
} from "../tensor/index";
import { BatchNorm1d, Dropout, Linear, type Module } from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

type Run = typeof checkpoint;
const plainly: Run = (fn, ...inputs) => fn(...inputs);

const input = () =>
  tensor(
    Float32Array.from({ length: 40 }, (_, i) => Math.fround(Math.sin(i))),
    { shape: [4, 10] },
  );

/** The loss, and all gradients, of a seeded model that computes some of it by `run`. */
async function results(
  run: Run,
  layers: () => Module[],
  forward: (x: Tensor, layers: readonly Module[], run: Run) => Tensor,
) {
  manualSeed(5);
  const made = layers();
  const x = input();
  x.requiresGrad = true;
  const loss = sum(mul(forward(x, made, run), 0.1));
  loss.backward();
  const parameters = made.flatMap((layer) => layer.parameters());
  const buffers = made.flatMap((layer) => layer.buffers());
  const values = [loss, x.grad!, ...parameters.map((parameter) => parameter.grad!), ...buffers];
  return Promise.all(values.map((value) => value.data()));
}

async function expectSameBits(
  layers: () => Module[],
  forward: (x: Tensor, layers: readonly Module[], run: Run) => Tensor,
) {
  const checkpointed = await results(checkpoint, layers, forward);
  expect(checkpointed).toEqual(await results(plainly, layers, forward));
  expect(checkpointed.slice(0, 2).every((values) => values.some((value) => value !== 0))).toBe(true);
}

test("gradients have the bits that they have without a checkpoint, also of parameters that the function captures", async () => {
  await expectSameBits(
    () => [new Linear(10, 10), new Linear(10, 10)],
    (x, [a, b], run) => b!.forward(run((h) => gelu(a!.forward(gelu(a!.forward(h)))), a!.forward(x))),
  );
});

test("dropout draws the same numbers when it runs again, also in nested checkpoints", async () => {
  await expectSameBits(
    () => [new Linear(10, 10), new Dropout(0.5), new Linear(10, 10), new Dropout(0.3)],
    (x, [a, drop, b, another], run) =>
      another!.forward(
        run((h) => {
          const dropped = drop!.forward(a!.forward(h));
          // Takes `dropped` from the outer function, not as an input.
          return run((weight) => another!.forward(sin(b!.forward(mul(dropped, weight)))), drop!.forward(dropped));
        }, x),
      ),
  );
});

test("what autocast casts is cast again in the replay, wherever backward() is called", async () => {
  await expectSameBits(
    () => [new Linear(10, 10), new Linear(10, 10)],
    (x, [a, b], run) =>
      autocast({ dtype: "bfloat16" }, () => run((h) => b!.forward(gelu(a!.forward(gelu(a!.forward(h))))), x)),
  );
});

test("batch norm's running moments change once", async () => {
  await expectSameBits(
    () => [new Linear(10, 6), new BatchNorm1d(6)],
    (x, [a, norm], run) => run((h) => exp(norm!.forward(a!.forward(h))), x),
  );
});

test("a function of several results may be flushed before the backward pass, which has only its inputs", async () => {
  const x = tensor([1, 2, 3], { requiresGrad: true });
  const [first, second] = checkpoint((a) => [sum(exp(sin(a))), sum(sin(mul(a, a)))] as const, x);
  await flush();
  first.backward();
  second.backward();
  const values = await x.grad!.data();
  for (const [i, a] of [1, 2, 3].entries())
    expect(values[i]).toBeCloseTo(Math.cos(a) * Math.exp(Math.sin(a)) + 2 * a * Math.cos(a * a), 5);
});

test("second derivatives go through a checkpoint", async () => {
  const x = tensor([0.5, -1], { requiresGrad: true });
  const [slope] = grad(sum(checkpoint((a) => exp(mul(a, a)), x)), x, { createGraph: true });
  const [curvature] = grad(sum(slope!), x);
  const values = await curvature!.data();
  for (const [i, a] of [0.5, -1].entries()) expect(values[i]).toBeCloseTo((2 + 4 * a * a) * Math.exp(a * a), 4);
});

test("without gradients the function just runs", async () => {
  const x = tensor([1, 2], { requiresGrad: true });
  let runs = 0;
  const fn = (a: Tensor) => {
    runs += 1;
    return mul(a, 2);
  };
  const y = noGrad(() => checkpoint(fn, x));
  expect([await y.array(), y.requiresGrad, runs]).toEqual([[2, 4], false, 1]);
});

test("checkpointed blocks hold a fraction of the bytes", async () => {
  const bytes = async (run: Run) => {
    const own = await requestDevice();
    setDefaultDevice(own);
    const x = rand([256, 64], { seed: 1, stream: [0, 0], requiresGrad: true });
    let hidden = x;
    for (let block = 0; block < 6; block++)
      hidden = run((h) => [1, 2, 3, 4, 5, 6].reduce((value, k) => softmaxed(mul(value, k)), h), hidden);
    sum(mul(hidden, hidden)).backward();
    await flush();
    const held = own.stats.bytes;
    own.destroy();
    setDefaultDevice(device);
    return held;
  };
  const softmaxed = (value: Tensor) => value.softmax(1);
  const [checkpointed, plain] = [await bytes(checkpoint), await bytes(plainly)];
  // Of 36 tensors for the backward pass, the checkpoints keep 6 and those of one block.
  expect(checkpointed).toBeLessThan(plain * 0.55);
});

test("a function that computes something else when it runs again is told so", () => {
  const x = tensor([1, 2], { requiresGrad: true });
  let runs = 0;
  const backwardOf = (fn: (a: Tensor) => Tensor) => () => {
    runs = 0;
    sum(checkpoint(fn, x)).backward();
  };
  expect(backwardOf((a) => (runs++ === 0 ? exp(a) : sin(a)))).toThrow(
    "checkpoint: when it is run again for the backward pass, the function computes sin of float32[2] where it computed exp of float32[2]",
  );
  expect(backwardOf((a) => (runs++ === 0 ? exp(sin(a)) : sin(a)))).toThrow(
    "the function stops before exp of float32[2]",
  );
  expect(() => checkpoint(async (a: Tensor) => exp(a), x)).toThrow("asynchronous");
});

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import {
  accumulate_,
  copy_,
  crossEntropy,
  exp,
  FlatParameters,
  flush,
  gelu,
  linear,
  mul,
  ones,
  rand,
  relu,
  setDefaultDevice,
  sum,
  type Tensor,
  tensor,
  update_,
  zeros,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const sizes = [8, 4] as const;

/** A small MLP with flat parameters, inputs for micro-batches of two sizes, and SGD. */
async function model() {
  const parameter = async (shape: number[], stream: number) => {
    const values = await rand(shape, { seed: 3, stream: [stream, 0] })
      .sub(0.5)
      .mul(0.6)
      .data();
    return tensor(values as Float32Array, { shape, requiresGrad: true });
  };
  const [w1, b1, w2, b2] = [
    await parameter([17, 20], 0),
    await parameter([17], 1),
    await parameter([10, 17], 2),
    await parameter([10], 3),
  ] as const;
  const flat = new FlatParameters(Object.entries({ w1, b1, w2, b2 }), { extra: 1 });
  const inputs = new Map(
    sizes.map((size) => [
      size,
      { x: tensor(new Float32Array(size * 20), { shape: [size, 20] }), y: tensor(new Int32Array(size)) },
    ]),
  );
  const forward = (x: Tensor) => linear(gelu(relu(linear(x, w1, b1))), w2, b2);
  /** One step over the micro-batches; returns the mean loss. */
  const step = async (seed: number, microBatches: readonly (8 | 4)[]) => {
    const total = microBatches.reduce((sum, size) => sum + size, 0);
    flat.zeroGradients();
    for (const [i, size] of microBatches.entries()) {
      const { x, y } = inputs.get(size)!;
      x.write(Float32Array.from({ length: size * 20 }, (_, at) => Math.fround(Math.sin(seed * 31 + i * 7 + at))));
      y.write(Int32Array.from({ length: size }, (_, at) => (seed + i + at) % 10));
      const loss = mul(crossEntropy(forward(x), y, { reduction: "sum" }), 1 / total);
      loss.backward();
      accumulate_(flat.extra, loss.detach().reshape([1]));
      await flush();
    }
    const gradients = await flat.readGradients();
    update_(
      { name: "descend", statements: "t0 -= s0 * t1;" },
      [flat.weights],
      [flat.gradients.narrow(0, 0, flat.layout.length)],
      [0.5],
    );
    await flush();
    return gradients[flat.layout.length]!;
  };
  return { flat, step, parameters: [w1, b1, w2, b2] as const };
}

test("after warm-up a step creates nothing on the GPU, also when its micro-batches change", async () => {
  const { step } = await model();
  const losses: number[] = [];
  const plans: (8 | 4)[][] = [[8, 4], [4, 8], [8], [4, 4, 4], [8, 8, 4]];
  for (const [i, microBatches] of plans.entries()) losses.push(await step(i, microBatches));
  const before = device.stats.snapshot();
  for (let i = 0; i < 10; i++) losses.push(await step(i % plans.length, plans[i % plans.length]!));
  const { dispatches, submits, ...created } = device.stats.snapshot();
  expect(created).toEqual({
    buffers: before.buffers,
    bytes: before.bytes,
    pipelines: before.pipelines,
    bindGroups: before.bindGroups,
  });
  expect(dispatches).toBeGreaterThan(before.dispatches);
  expect(submits - before.submits).toBeLessThan(60);
  expect(losses.every(Number.isFinite)).toBe(true);
  // The same data as ten steps before.
  expect(losses.at(-1)!).toBeLessThan(losses[4]!);
});

test("a loss that is kept and read at each step takes no new memory", async () => {
  const x = tensor([1, 2, 3]);
  const step = async () => {
    const loss = sum(mul(x, x)).keep();
    await flush();
    return (await loss.add(1).item()) + (await loss.item());
  };
  for (let i = 0; i < 4; i++) await step();
  const { buffers, bindGroups } = device.stats.snapshot();
  for (let i = 0; i < 10; i++) expect(await step()).toBe(29);
  expect(device.stats.snapshot()).toMatchObject({ buffers, bindGroups });
});

test("a batch in one micro-batch and in two gives the same gradients to rounding", async () => {
  const first = await model();
  const x = Float32Array.from({ length: 160 }, (_, i) => Math.fround(Math.cos(i)));
  const y = Int32Array.from({ length: 8 }, (_, i) => i);
  const gradientsOf = async (parts: readonly (readonly [number, number])[]) => {
    first.flat.zeroGradients();
    for (const [from, to] of parts) {
      const part = tensor(x.slice(from * 20, to * 20), { shape: [to - from, 20] });
      const [w1, b1, w2, b2] = first.parameters;
      const logits = linear(gelu(relu(linear(part, w1, b1))), w2, b2);
      mul(crossEntropy(logits, tensor(y.slice(from, to)), { reduction: "sum" }), 1 / 8).backward();
    }
    return first.flat.readGradients();
  };
  const whole = await gradientsOf([[0, 8]]);
  const halves = await gradientsOf([
    [0, 4],
    [4, 8],
  ]);
  expect(Math.max(...whole.map((g, i) => Math.abs(g - halves[i]!)))).toBeLessThan(1e-6);
  expect(Math.max(...whole.map(Math.abs))).toBeGreaterThan(0.01);
});
test("the padding between flat parameters stays zero", async () => {
  const { flat, step } = await model();
  await step(0, [8, 4]);
  const weights = await flat.readWeights();
  const gradients = await flat.readGradients();
  const covered = new Set(
    flat.layout.entries.flatMap(({ offset, length }) => Array.from({ length }, (_, i) => offset + i)),
  );
  expect(covered.size).toBe(17 * 20 + 17 + 170 + 10);
  for (let i = 0; i < flat.layout.length; i++)
    if (!covered.has(i)) expect([i, weights[i], gradients[i]]).toEqual([i, 0, 0]);
});

test("the same recording gives the same bits every time", async () => {
  const runs = [];
  for (let i = 0; i < 2; i++) {
    const { flat, step } = await model();
    for (let s = 0; s < 3; s++) await step(s, [8, 4]);
    runs.push(await flat.readWeights());
  }
  expect(runs[0]).toEqual(runs[1]);
});

test("old plans make room: memory stays bounded over many structures, and an old one still works", async () => {
  const run = async (length: number) => (await sum(mul(exp(zeros([length])), 2)).item()) === 2 * length;
  const lengths = Array.from({ length: 120 }, (_, i) => 5000 + 64 * i);
  for (const length of lengths.slice(0, 40)) expect(await run(length)).toBe(true);
  const bytes = device.stats.bytes;
  for (const length of lengths.slice(40)) expect(await run(length)).toBe(true);
  expect(await run(lengths[0]!)).toBe(true);
  // 120 structures of 20 to 50 KB each; only a few size classes live at once.
  expect(device.stats.bytes - bytes).toBeLessThan(1_000_000);
});

test("a read in the middle of a step sees changes in place up to there", async () => {
  const total = zeros([1]).keep();
  accumulate_(total, ones([1]));
  const first = total.data();
  accumulate_(total, ones([1]));
  const second = total.data();
  expect([await first, await second].map((values) => values[0])).toEqual([1, 2]);
});

test("a change in place may read the memory that it changes", async () => {
  const [a, b] = [tensor([1, 2, 3], { requiresGrad: true }), tensor([10, 20, 30], { requiresGrad: true })];
  const flat = new FlatParameters(Object.entries({ a, b }));
  accumulate_(a, b);
  copy_(b, a);
  accumulate_(a.grad!, ones([3]));
  accumulate_(b.grad!, a.grad!);
  accumulate_(a, a);
  expect(await a.array()).toEqual([22, 44, 66]);
  expect(await b.array()).toEqual([11, 22, 33]);
  const gradients = await flat.readGradients();
  expect([...gradients.slice(0, 3), ...gradients.slice(64, 67)]).toEqual([1, 1, 1, 1, 1, 1]);
});

test("flat parameters keep values that were computed before, and gradients land in their places", async () => {
  const computed = mul(tensor([1, 2]), 3);
  const leaf = tensor(await computed.data(), { requiresGrad: true });
  await leaf.add(1).data();
  const flat = new FlatParameters([["leaf", leaf]], { extra: 2 });
  sum(mul(leaf, leaf)).backward();
  accumulate_(flat.extra, tensor([7, 8]));
  const gradients = await flat.readGradients();
  expect([gradients.length, ...gradients.slice(0, 2), ...gradients.slice(64)]).toEqual([66, 6, 12, 7, 8]);
  expect([...(await flat.readWeights()).slice(0, 3)]).toEqual([3, 6, 0]);
});

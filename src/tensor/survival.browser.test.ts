import { afterAll, expect, test } from "vitest";
import { DeviceLostError, requestDevice } from "../gpu";
import {
  accumulate_,
  add,
  copy_,
  eq,
  flush,
  full,
  linear,
  matmul,
  mul,
  noGrad,
  rand,
  setDefaultDevice,
  sum,
  type Tensor,
  tensor,
  zeros,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

test("an intermediate result used after a flush is a sentence that names what made it", async () => {
  const a = tensor([1, 2]);
  const b = mul(a, 3);
  await flush();
  expect(() => add(b, 1)).toThrow(
    "The tensor float32[2] that mul made did not survive the flush. Before values are read or flush() is called, call keep() on it, or backward()",
  );
});

test("tensors from data, what keep() marks and what was asked for survive flushes", async () => {
  const a = tensor([1, 2]);
  const kept = mul(a, 3).keep();
  const asked = mul(a, 5);
  expect(await asked.array()).toEqual([5, 10]);
  await flush();
  expect(await add(add(kept, asked), a).array()).toEqual([9, 18]);
});

test("values asked for in one go are read with one flush", async () => {
  const a = mul(tensor([1, 2]), 3);
  const b = add(a, 1);
  const c = sum(b);
  const before = device.stats.submits;
  const values = await Promise.all([a.array(), b.array(), c.item()]);
  expect(values).toEqual([[3, 6], [4, 7], 11]);
  expect(device.stats.submits - before).toBe(1);
});

test("what is recorded after a value was asked for is not part of its flush", async () => {
  const x = tensor([1, 2]);
  const asked = mul(x, 3).array();
  const later = mul(x, 4);
  expect(await asked).toEqual([3, 6]);
  expect(await later.array()).toEqual([4, 8]);
});

test("zeros and random numbers survive, since they are made again where they are used", async () => {
  const z = zeros([2]);
  const r = rand([4], { seed: 5 });
  const first = await add(r, 0).array();
  expect(await add(r, 0).array()).toEqual(first);
  expect(await add(z, 1).array()).toEqual([1, 1]);
});

test("gradients of leaves survive, and add up over backward passes", async () => {
  const w = tensor([2, 3], { requiresGrad: true });
  sum(mul(w, w)).backward();
  await flush();
  sum(mul(w, w)).backward();
  expect(await w.grad!.array()).toEqual([8, 12]);
  w.grad = null;
  sum(mul(w, 5)).backward();
  expect(await w.grad!.array()).toEqual([5, 5]);
});

test("write() takes effect after what was recorded before it, and before what is recorded after", async () => {
  const x = tensor([1, 2]);
  const before = mul(x, 10);
  x.write([3, 4]);
  const after = mul(x, 10);
  before.keep();
  expect(await after.array()).toEqual([30, 40]);
  expect(await before.array()).toEqual([10, 20]);
  expect(await x.array()).toEqual([3, 4]);
});

test("zeros can be written to, and a creation's other tensors don't change", async () => {
  const x = zeros([3]);
  const y = full([2], 7);
  x.write([1, 2, 3]);
  y.write([8, 9]);
  expect(await x.array()).toEqual([1, 2, 3]);
  expect(await y.array()).toEqual([8, 9]);
  expect(await zeros([3]).array()).toEqual([0, 0, 0]);
});

test("a backward pass over a parameter that was changed since is refused", () => {
  const w = tensor([2], { requiresGrad: true });
  const loss = sum(mul(w, w));
  noGrad(() => copy_(w, tensor([5])));
  expect(() => loss.backward()).toThrow("mul: its input 0, float32[1], was changed in place after it was used");
});

test("changing the result of an operation in place is refused", () => {
  expect(() => copy_(mul(tensor([1]), 2), tensor([1]))).toThrow(
    "copy_: the target float32[1] is the result of an operation",
  );
});

test("mistakes throw at the call and name operator, argument, what it got and what was expected", () => {
  const a = zeros([2, 3]);
  expect(() => matmul(a, zeros([4, 5]))).toThrow(
    "matmul: got shapes [2, 3] and [4, 5]; expected the first's last size to equal the second's last but one.",
  );
  expect(() => add(a, zeros([4]))).toThrow("add: the shapes [2, 3] and [4] don't broadcast");
  expect(() => a.reshape(4, 2)).toThrow(
    "reshape: the shape is [4, 2] and the input's [2, 3]; expected one with 6 elements.",
  );
  expect(() => a.sum(2)).toThrow("sum: dim is 2; expected an integer from -2 to 1.");
  expect(() => linear(a, zeros([5, 4]))).toThrow("linear: the input has shape [2, 3] and the weight [5, 4]");
  expect(() => tensor([[1, 2], [3]])).toThrow("tensor: the nested arrays are uneven");
  expect(() => a.backward()).toThrow("backward: the output has shape [2, 3]; expected one element");
});

test("a tensor too large for the device names its shape, its bytes and the limit, and so does what depends on it", async () => {
  const size = device.gpu.limits.maxStorageBufferBindingSize / 2;
  const huge = add(rand([size]), 1).keep();
  await expect(flush()).rejects.toThrow(
    /of shape \[\d+\] needs \d+ bytes in one GPU buffer, and this device binds at most \d+/,
  );
  await expect(huge.narrow(0, 0, 1).item()).rejects.toThrow(
    `a tensor of shape [${size}] has no value: the flush that was to compute it failed.`,
  );
  expect(await tensor([1]).add(1).item()).toBe(2);
});

test("losing the device in mid-step rejects with the reason, and a new device goes on", async () => {
  const lost = await requestDevice();
  setDefaultDevice(lost);
  const old = tensor([1]);
  expect(await add(old, 1).item()).toBe(2);
  const reading = add(old, 2).item();
  lost.destroy();
  await expect(reading).rejects.toThrow(DeviceLostError);
  await lost.lost;
  await expect(add(old, 3).item()).rejects.toThrow("The GPU device was destroyed.");
  setDefaultDevice(device);
  await expect(add(old, 1).item()).rejects.toThrow("lies on a GPU device that is no longer the current one");
  expect(await add(tensor([1]), 1).item()).toBe(2);
});

test("results of one element survive flushes, whether or not they were part of one before they are read", async () => {
  const x = tensor([1, 2, 3], { requiresGrad: true });
  const loss = sum(mul(x, x));
  loss.backward();
  await flush();
  noGrad(() => accumulate_(x, x.grad!));
  const accuracy = eq(x, 3).to("float32").mean();
  await flush();
  expect(await loss.item()).toBe(14);
  expect(await accuracy.item()).toBeCloseTo(1 / 3);
  expect(await add(loss, accuracy).mul(3).item()).toBeCloseTo(43);
});

test("losses read every few steps have each step's value, and running means add up over flushes", async () => {
  const x = tensor([1, 2]);
  const losses: Tensor[] = [];
  let running = sum(zeros([1]));
  const last = tensor([0]);
  for (let step = 1; step <= 6; step++) {
    x.write([step, 2 * step]);
    const loss = sum(x);
    losses.push(loss);
    running = add(running, loss);
    copy_(last, x.narrow(0, 1, 1));
    await flush();
  }
  expect(await Promise.all(losses.map((loss) => loss.item()))).toEqual([3, 6, 9, 12, 15, 18]);
  expect(await running.item()).toBe(63);
  expect(await last.item()).toBe(12);
});

test("an element seen before its memory was changed in place keeps its value", async () => {
  const x = tensor([1, 2]);
  const second = x.select(0, 1);
  copy_(x, tensor([8, 9]));
  await flush();
  expect(await second.item()).toBe(2);
});

test("scalars that survive take no new memory, no bind group and no kernel, step after step", async () => {
  const x = tensor([1, 2, 3], { requiresGrad: true });
  let before = sum(x);
  const step = async () => {
    const loss = sum(mul(x, x));
    loss.backward();
    before = add(mul(before, 0.5), loss);
    await flush();
    return loss;
  };
  for (let i = 0; i < 4; i++) await (await step()).item();
  const { buffers, bytes, bindGroups, pipelines } = device.stats.snapshot();
  const losses = [];
  for (let i = 0; i < 20; i++) losses.push(await step());
  expect(await losses[3]!.item()).toBe(14);
  expect(device.stats.snapshot()).toMatchObject({ buffers, bytes, bindGroups, pipelines });
});

test("a scalar that was overwritten by thousands of later ones says so, unless it was kept or read", async () => {
  const x = tensor([1, 2, 3]);
  const [forgotten, kept, known] = [sum(x), mul(sum(x), 2).keep(), mul(sum(x), 3)];
  expect(await known.item()).toBe(18);
  const perFlush = 512;
  for (let made = 0; made < 16_384; made += perFlush) {
    for (let i = 0; i < perFlush; i++) x.select(0, 0);
    await flush();
  }
  expect(() => add(forgotten, 1)).toThrow(
    "The tensor of one element that sum made is gone: such results survive until 16384 later ones, and there were more. Read it earlier, or call keep() on it.",
  );
  await expect(forgotten.item()).rejects.toThrow("is gone");
  expect([await kept.item(), await known.item()]).toEqual([12, 18]);
});

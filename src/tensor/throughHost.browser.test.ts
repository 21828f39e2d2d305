import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { add, copy_, flush, mul, setDefaultDevice, sum, tensor, throughHost } from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const plusOne = async (values: Float32Array<ArrayBuffer>) => values.map((value) => value + 1);

test("the host computes in the middle of a recording, and what was recorded before is still there behind it", async () => {
  const x = tensor([1, 2]);
  for (let round = 0; round < 3; round += 1) {
    const before = mul(x, 10);
    const through = throughHost(add(before, 1), [2], plusOne);
    const twice = throughHost(mul(through, 2), [2], plusOne);
    // 10 x + (2 (10 x + 2) + 1)
    expect(await add(before, twice).array()).toEqual([35, 65]);
  }
});

test("a result is read as any other, and a flush waits for it", async () => {
  const x = tensor([1, 2]);
  const through = throughHost(mul(x, 3), [2], plusOne);
  const target = tensor([0, 0]);
  copy_(target, mul(through, 10));
  await flush();
  expect(await target.array()).toEqual([40, 70]);
  expect(await throughHost(mul(x, 3), [2], plusOne).array()).toEqual([4, 7]);
  expect(await throughHost(x, [1], async ([a = 0, b = 0]) => Float32Array.of(a + b)).item()).toBe(3);
  expect(await sum(through).item()).toBe(11);
});

test("where the host fails, whoever uses the result sees why", async () => {
  const lost = () => Promise.reject(new Error("Rank 1 is gone."));
  await expect(mul(throughHost(mul(tensor([1]), 2), [1], lost), 2).array()).rejects.toThrow("Rank 1 is gone.");
  await expect(throughHost(mul(tensor([1]), 2), [3], plusOne).array()).rejects.toThrow("got 1 values; expected 3");
});

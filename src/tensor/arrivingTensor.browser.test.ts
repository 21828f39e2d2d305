import { afterAll, expect, test } from "vitest";
import { deferred } from "../base/deferred";
import { requestDevice } from "../gpu";
import { arrivingTensor } from "./arrivingTensor";
import { add, copy_, flush, mul, setDefaultDevice, sum, tensor } from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

test("what is recorded with values that come later waits for them, and what follows stays in order", async () => {
  const values = deferred<Float32Array<ArrayBuffer>>();
  const later = arrivingTensor([2], values.promise);
  const target = tensor([0, 0]);
  copy_(target, mul(later, 10));
  const flushed = flush();
  const after = add(target, 1);
  const read = after.array();
  const own = later.array();
  setTimeout(() => values.resolve(Float32Array.of(1, 2)), 20);
  expect(await read).toEqual([11, 21]);
  expect(await own).toEqual([1, 2]);
  await flushed;
  expect(await sum(later).item()).toBe(3);
});

test("values may depend on what was recorded before them", async () => {
  const x = tensor([1, 2]);
  const later = arrivingTensor(
    [2],
    mul(x, 3)
      .data()
      .then((data) => Float32Array.from(data, (value) => value + 1)),
  );
  expect(await mul(later, 2).array()).toEqual([8, 14]);
});

test("where they don't come, whoever uses them sees why", async () => {
  const later = arrivingTensor([1], Promise.reject(new Error("Rank 1 is gone.")));
  await expect(mul(later, 2).array()).rejects.toThrow("Rank 1 is gone.");
  await expect(arrivingTensor([2], Promise.resolve(new Float32Array(3))).array()).rejects.toThrow(
    "got 3 values; expected 2",
  );
});

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../../gpu";
import { logSoftmax, mul, setDefaultDevice, softmax, sum, tensor } from "../index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const rows = (count: number, length: number) =>
  Array.from({ length: count }, (_, r) => Array.from({ length }, (_, c) => 20 * Math.sin(r * 31 + c * 7)));

/** Row by row in double precision. */
function reference(row: readonly number[]) {
  const top = Math.max(...row);
  const total = row.reduce((all, x) => all + Math.exp(x - top), 0);
  return row.map((x) => Math.exp(x - top) / total);
}

// Lengths in whole vectors of 4 and others, shorter and longer than what the invocations of a row take at once.
for (const length of [1, 4, 7, 64, 300, 1030])
  for (const isSoftware of [true, false])
    test(`rows of ${length}, ${isSoftware ? "an invocation each" : "shared by invocations"}, and their gradients`, async () => {
      // Also what runs on a GPU is checked here: the kernels are chosen by this alone.
      const chosen = Object.assign(Object.create(device), { isSoftware });
      setDefaultDevice(chosen);
      const values = rows(3, length);
      const expected = values.map(reference);
      const x = tensor(values, { requiresGrad: true });
      const weights = rows(3, length).map((row) => row.map((v, c) => Math.cos(v + c)));
      const p = softmax(x, 1);
      const logs = logSoftmax(x, 1);
      sum(mul(p, tensor(weights))).backward();
      const [got, gotLogs, gradient] = await Promise.all([p.data(), logs.data(), x.grad!.data()]);
      for (const [r, row] of expected.entries()) {
        const mean = row.reduce((all, q, c) => all + q * weights[r]![c]!, 0);
        for (const [c, q] of row.entries()) {
          const at = r * length + c;
          expect(Math.abs(got[at]! - q)).toBeLessThan(1e-6);
          expect(Math.abs(gotLogs[at]! - Math.log(q))).toBeLessThan(1e-5 * (1 - Math.log(q)));
          expect(Math.abs(gradient[at]! - q * (weights[r]![c]! - mean))).toBeLessThan(1e-6);
        }
      }
    });

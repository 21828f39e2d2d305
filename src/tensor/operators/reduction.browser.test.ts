import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../../gpu";
import { argmax, argmin, mul, setDefaultDevice, sum, type Tensor, tensor } from "../index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

/** Whole numbers, so that every order of addition gives the same sum. */
const wholes = (rows: number, columns: number) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, i) => ((i * 7919) % 17) - 8),
    { shape: [rows, columns] },
  );
const at = (columns: number, r: number, c: number) => (((r * columns + c) * 7919) % 17) - 8;
const total = (count: number, of: (i: number) => number) => {
  let all = 0;
  for (let i = 0; i < count; i++) all += of(i);
  return all;
};

for (const [rows, columns] of [
  [3, 8],
  [5, 12],
  [7, 4100],
  [4100, 8],
  [1, 70_000],
  [70_000, 4],
  [9, 7],
  [2, 65_544],
] as const)
  test(`sums of [${rows}, ${columns}] over rows, columns and all, also of a chain, are exact`, async () => {
    const x = wholes(rows, columns);
    const sums = (y: Tensor) => [sum(y, 1), sum(y, 0), sum(y)];
    const values = await Promise.all([...sums(x), ...sums(mul(x, x))].map((s) => s.data()));
    const byRow = (f: (v: number) => number) =>
      Array.from({ length: rows }, (_, r) => total(columns, (c) => f(at(columns, r, c))));
    const byColumn = (f: (v: number) => number) =>
      Array.from({ length: columns }, (_, c) => total(rows, (r) => f(at(columns, r, c))));
    for (const [i, f] of [(v: number) => v, (v: number) => v * v].entries()) {
      const rowSums = byRow(f);
      expect([...values[3 * i]!]).toEqual(rowSums);
      expect([...values[3 * i + 1]!]).toEqual(byColumn(f));
      expect([...values[3 * i + 2]!]).toEqual([total(rows, (r) => rowSums[r]!)]);
    }
  });

test("the index of the best of many is the first among equals, and a NaN's where there is one", async () => {
  const values = Float32Array.from({ length: 5000 }, (_, i) => i % 100);
  const x = tensor(values);
  values[3210] = Number.NaN;
  const withNan = tensor(values);
  const indices = [argmax(x), argmin(x), argmax(withNan), argmax(x.reshape(50, 100).t().reshape(5000))];
  expect(await Promise.all(indices.map((index) => index.item()))).toEqual([99, 0, 3210, 4950]);
});

test("indices along any dimension, of chains and of integers that float32 can't tell apart", async () => {
  const x = tensor(
    Float32Array.from({ length: 2 * 1200 * 3 }, (_, i) => (i * 37) % 7200),
    { shape: [2, 1200, 3] },
  );
  const expected = [0, 1].map((o) =>
    [0, 1, 2].map((i) => {
      const column = Array.from({ length: 1200 }, (_, p) => (((o * 1200 + p) * 3 + i) * 37) % 7200);
      return column.indexOf(Math.max(...column));
    }),
  );
  const integers = tensor(Int32Array.of(2 ** 24, 2 ** 24 + 1, 2 ** 24));
  const [along, ofChain, ofIntegers] = await Promise.all([
    argmax(x, 1).array(),
    argmin(mul(x.narrow(1, 0, 400), -1), 1).array(),
    argmax(integers).item(),
  ]);
  expect(along).toEqual(expected);
  expect(ofChain).toEqual(
    [0, 1].map((o) =>
      [0, 1, 2].map((i) => {
        const column = Array.from({ length: 400 }, (_, p) => (((o * 1200 + p) * 3 + i) * 37) % 7200);
        return column.indexOf(Math.max(...column));
      }),
    ),
  );
  expect(ofIntegers).toBe(1);
});

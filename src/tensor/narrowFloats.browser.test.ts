import { expect, test } from "vitest";
import { fromBrain, fromHalf, toBrain, toHalf } from "../base/float16";
import * as torch from "./index";

const types = ["float16", "bfloat16"] as const;
const nearest = { float16: (x: number) => fromHalf(toHalf(x)), bfloat16: (x: number) => fromBrain(toBrain(x)) };

/** Numbers that are hard to round: ties, the ends of the ranges, subnormals, zeros, what isn't finite. */
const hard = [
  ...[0, -0, 1, -1, 1 / 3, 2049, 2051, -2049, 65504, 65519, 65520, -65520, 1e5, 1e30, 3.3e38, 3.4e38, -3.4e38],
  ...[2 ** -14, 2 ** -15, 2 ** -24, 1.5 * 2 ** -24, 2 ** -25, 1.01 * 2 ** -25, 2.5 * 2 ** -24, -(2 ** -24), 2 ** -26],
  ...[1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 6.1e-5, 5.9e-5, Infinity, -Infinity, Number.NaN],
];

test.each(types)("%s survives upload and download, in any number", async (dtype) => {
  for (const length of [0, 1, 3, 4, 5, hard.length]) {
    const values = hard.slice(hard.length - length);
    const uploaded = torch.tensor(values, { dtype, shape: [length] });
    expect([...(await uploaded.data())]).toEqual(values.map(nearest[dtype]));
    expect(String(uploaded)).toBe(`${dtype}[${length}]`);
  }
});

test.each(types)("to(%s) rounds to nearest, ties to even; too large is infinite, NaN stays NaN", async (dtype) => {
  const narrow = torch.tensor(hard).to(dtype);
  const back = narrow.float();
  const [stored, wide] = await Promise.all([narrow.data(), back.data()]);
  expect([...stored]).toEqual(hard.map(nearest[dtype]));
  expect([...wide]).toEqual(hard.map(nearest[dtype]));
});

test.each(types)("every result of %s operators is rounded, stored or not", async (dtype) => {
  const [a, b] = [1 / 3, 0.7].map((x) => nearest[dtype](x)) as [number, number];
  const x = torch.tensor([a, b, a], { dtype });
  const y = torch.tensor([b, b, a], { dtype });
  // The sum isn't stored.
  const z = x.add(y).mul(x);
  expect(z.dtype).toBe(dtype);
  const product = (p: number, q: number) => nearest[dtype](Math.fround(nearest[dtype](p + q) * p));
  expect([...(await z.data())]).toEqual([product(a, b), product(b, b), product(a, a)]);
});

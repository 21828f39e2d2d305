import { expect, test } from "vitest";
import { fromHalf, toHalf } from "../base/float16";
import { Float16Bits } from "./float16";

test("every half survives the way to float32 and back", () => {
  const halves = Array.from({ length: 65536 }, (_, half) => half);
  const wrong = halves.filter((half) => {
    const value = fromHalf(half);
    return toHalf(value) !== (Number.isNaN(value) ? 0x7e00 : half);
  });
  expect(wrong).toEqual([]);
});

test("values between two halves go to the nearest, ties to the even one", () => {
  const wrong: number[] = [];
  for (let half = 1; half < 0x7c00; half += 1) {
    const [before, next] = [fromHalf(half - 1), fromHalf(half)];
    const middle = (before + next) / 2;
    const even = half % 2 === 0 ? half : half - 1;
    const isRight =
      toHalf(middle) === even &&
      toHalf(-middle) === (even | 0x8000) &&
      toHalf(middle + (next - middle) / 2) === half &&
      toHalf(middle - (middle - before) / 2) === half - 1;
    if (!isRight) wrong.push(half);
  }
  expect(wrong).toEqual([]);
});

test("what is too large becomes infinity, from 65520 on", () => {
  expect([65504, 65519.99, 65520, 1e30, -65520].map(toHalf)).toEqual([0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00]);
});

test("arrays of halves convert both ways", () => {
  const halves = Float16Bits.from([1, -2.5, 60000, 2 ** -24]);
  expect(halves.length).toBe(4);
  expect([...halves.toFloat32()]).toEqual([1, -2.5, 60000, 2 ** -24]);
});

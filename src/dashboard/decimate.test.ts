import { describe, expect, test } from "vitest";
import { decimate } from "./decimate";

describe("decimate", () => {
  test("keeps every value while there are few", () => {
    expect(decimate([3, 1, 2], 3, 10)).toEqual([0, 1, 2]);
    expect(decimate([], 0, 10)).toEqual([]);
  });

  test("stays within its limit, in ascending order, first and last stretch included", () => {
    const values = Float64Array.from({ length: 100_000 }, (_, i) => Math.sin(i / 50));
    const chosen = decimate(values, values.length, 1000);
    expect(chosen.length).toBeLessThanOrEqual(1001);
    expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b));
    expect(chosen.at(-1)).toBe(99_999);
    expect(chosen[0]).toBeLessThan(200);
  });

  test("keeps a spike of one value among many", () => {
    const values = new Float64Array(50_000);
    values[31_234] = 9;
    values[40_001] = -9;
    const chosen = decimate(values, values.length, 100);
    expect(chosen).toContain(31_234);
    expect(chosen).toContain(40_001);
  });

  test("passes over NaNs, however many", () => {
    const values = new Float64Array(1000).fill(Number.NaN);
    expect(decimate(values, 1000, 50)).toEqual([]);
    values[500] = 1;
    expect(decimate(values, 1000, 50)).toEqual([500]);
    expect(decimate([Number.NaN, 2], 2, 50)).toEqual([1]);
  });
});

import { expect } from "@playwright/test";

/** Promise 1 with SGD and momentum: two curves agree to a relative 1e-5 at every step. */
export function expectSameCurve(actual: readonly number[], expected: readonly number[], tolerance = 1e-5): void {
  expect(actual.length).toBe(expected.length);
  const differences = actual.map(
    (loss, step) => Math.abs(loss - (expected[step] ?? Number.NaN)) / Math.abs(expected[step] ?? 1),
  );
  const worst = differences.reduce(
    (most, difference, step) => (difference > (differences[most] ?? 0) ? step : most),
    0,
  );
  expect(
    differences.every((difference) => difference <= tolerance),
    `the curves part most at step ${worst}: ${actual[worst]} and ${expected[worst]}, relative ${differences[worst]}`,
  ).toBe(true);
}

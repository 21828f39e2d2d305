import { expect, test } from "vitest";
import { LossSeries } from "./lossSeries";

test("keeps losses in order over many additions", () => {
  const series = new LossSeries();
  for (let step = 0; step < 5000; step += 7) {
    series.add(
      step,
      Array.from({ length: 7 }, (_, i) => step + i),
    );
  }
  expect(series.length).toBe(5005);
  expect([series.raw(0), series.raw(1023), series.raw(1024), series.raw(5004)]).toEqual([0, 1023, 1024, 5004]);
  expect(series.raw(5005)).toBeNaN();
});

test("the moving average of a constant is that constant from the first step on", () => {
  const series = new LossSeries();
  series.add(0, [2, 2, 2, 2]);
  for (const step of [0, 1, 3]) expect(series.smoothed(step)).toBeCloseTo(2, 12);
});

test("the moving average weighs each step 0.85 times as much as the one after it", () => {
  const series = new LossSeries();
  series.add(0, [1, 0, 4]);
  expect(series.smoothed(2)).toBeCloseTo((1 * 0.85 ** 2 + 0 * 0.85 + 4) / (0.85 ** 2 + 0.85 + 1), 12);
});

test("steps that were never told of are gaps in the curve and don't pull the average", () => {
  const series = new LossSeries();
  series.add(3, [2, 2]);
  expect(series.length).toBe(5);
  expect(series.smoothed(2)).toBeNaN();
  expect(series.smoothed(4)).toBeCloseTo(2, 12);
  expect(series.curve(100).steps).toEqual([4, 5]);
});

test("steps told again replace what followed from them", () => {
  const series = new LossSeries();
  series.add(0, [1, 9, 9]);
  series.add(1, [1]);
  expect(series.length).toBe(2);
  expect(series.smoothed(1)).toBeCloseTo(1, 12);
});

test("a loss that is no finite number leaves the average as it was", () => {
  const series = new LossSeries();
  series.add(0, [3, Number.POSITIVE_INFINITY, Number.NaN]);
  expect(series.smoothed(2)).toBeCloseTo(3, 12);
});

test("nothing new changes nothing", () => {
  const series = new LossSeries();
  series.add(0, [1, 2]);
  series.add(2, []);
  expect(series.length).toBe(2);
});

import { expect, test } from "vitest";
import { bucketRanges } from "./buckets";

const layoutOf = (...lengths: number[]) => {
  let offset = 0;
  const entries = lengths.map((length, index) => {
    const entry = { name: `p${index}`, shape: [length], offset, length };
    offset += Math.ceil(length / 64) * 64;
    return entry;
  });
  return { entries, length: offset };
};
const quarterMb = 2 ** 16;

test("the first bucket is small, and a bucket is full once it has reached its size", () => {
  const layout = layoutOf(quarterMb, quarterMb, quarterMb, quarterMb, quarterMb);
  const ranges = bucketRanges(layout, 0.5, 0.25);
  expect(ranges.map(({ from, to }) => [from / quarterMb, to / quarterMb])).toEqual([
    [0, 1],
    [1, 3],
    [3, 5],
  ]);
  expect(ranges.map(({ entries }) => entries.map(({ name }) => name))).toEqual([["p0"], ["p1", "p2"], ["p3", "p4"]]);
});

test("buckets cover the layout without gaps, padding included, and offsets count from the bucket's beginning", () => {
  const layout = layoutOf(3, 100, 1, quarterMb, 7);
  const ranges = bucketRanges(layout, 0.001, 1);
  expect(ranges[0]!.from).toBe(0);
  expect(ranges.at(-1)!.to).toBe(layout.length);
  for (const [index, range] of ranges.entries()) {
    expect(range.index).toBe(index);
    if (index > 0) expect(range.from).toBe(ranges[index - 1]!.to);
    expect(range.entries[0]!.offset).toBe(0);
  }
  expect(ranges.flatMap(({ entries }) => entries).map(({ length }) => length)).toEqual([3, 100, 1, quarterMb, 7]);
});

test("a parameter larger than a bucket has one of its own; no parameters, no buckets", () => {
  expect(bucketRanges(layoutOf(quarterMb), 0.01, 0.01)).toHaveLength(1);
  expect(bucketRanges(layoutOf(), 25, 1)).toEqual([]);
});

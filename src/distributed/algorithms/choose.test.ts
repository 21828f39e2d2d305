import { expect, test } from "vitest";
import { chooseAllReduce } from "./choose";
import { recursiveDoubling } from "./doubling";
import { ringAllReduce } from "./ring";

/** The most KiB that an all-reduce by recursive doubling has. */
function limitOf(worldSize: number): number {
  const sizes = Array.from({ length: 200 }, (_, kib) => kib);
  const choices = sizes.map((kib) => chooseAllReduce({ rank: 0, worldSize }, kib * 1024));
  const limit = choices.lastIndexOf(recursiveDoubling);
  expect(choices.slice(limit + 1).every((choice) => choice === ringAllReduce)).toBe(true);
  expect(choices.slice(0, limit + 1).every((choice) => choice === recursiveDoubling)).toBe(true);
  return limit;
}

test("small all-reduces double, large ones go round the ring, with one limit for each world", () => {
  expect([2, 3, 4, 6, 8].map(limitOf)).toEqual([64, 64, 32, 64, 35]);
  for (const worldSize of [5, 7, 16, 100]) expect(limitOf(worldSize)).toBeGreaterThanOrEqual(16);
});

test("the choice is the same on every rank", () => {
  for (let rank = 0; rank < 5; rank += 1)
    for (const bytes of [0, 4, 40_000, 70_000])
      expect(chooseAllReduce({ rank, worldSize: 5 }, bytes)).toBe(chooseAllReduce({ rank: 0, worldSize: 5 }, bytes));
});

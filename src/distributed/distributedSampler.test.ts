import { expect, test } from "vitest";
import { DistributedSampler } from "./distributedSampler";

const ofAll = (size: number, numReplicas: number, options: { shuffle?: boolean; dropLast?: boolean } = {}) =>
  Array.from({ length: numReplicas }, (_, rank) => [
    ...new DistributedSampler(size, { numReplicas, rank, shuffle: false, ...options }),
  ]);

test("ranks take turns, and the first samples are repeated where they don't go round", () => {
  expect(ofAll(7, 3)).toEqual([
    [0, 3, 6],
    [1, 4, 0],
    [2, 5, 1],
  ]);
});

test("dropLast leaves out what doesn't go round", () => {
  expect(ofAll(7, 3, { dropLast: true })).toEqual([
    [0, 3],
    [1, 4],
    [2, 5],
  ]);
  expect(ofAll(6, 3, { dropLast: true })).toEqual(ofAll(6, 3));
  expect(ofAll(4, 9, { dropLast: true }).every((own) => own.length === 0)).toBe(true);
});

test("4 samples on 9 ranks are padded by repetition, as often as it takes", () => {
  expect(ofAll(4, 9).flat()).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0]);
});

test("shuffled epochs cover the data set, differ, and are the same whenever they come", () => {
  const epoch = (number: number, seed = 5) =>
    Array.from({ length: 4 }, (_, rank) => {
      const sampler = new DistributedSampler({ length: 20 }, { numReplicas: 4, rank, seed });
      expect(sampler.length).toBe(5);
      sampler.setEpoch(number);
      return [...sampler];
    }).flat();
  expect(epoch(0).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(epoch(1)).not.toEqual(epoch(0));
  expect(epoch(0, 6)).not.toEqual(epoch(0));
  expect(epoch(1)).toEqual(epoch(1));
});

test("without a process group one rank has all; what can't be is a sentence", () => {
  expect([...new DistributedSampler(3, { shuffle: false })]).toEqual([0, 1, 2]);
  expect([...new DistributedSampler(0)]).toEqual([]);
  expect(() => new DistributedSampler(3, { numReplicas: 2, rank: 2 })).toThrow(
    "DistributedSampler: the rank is 2; expected one of 2, from 0.",
  );
  expect(() => new DistributedSampler(3).setEpoch(0.5)).toThrow("the epoch is 0.5; expected an integer from 0");
});

import { expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { allReduceHook, type CommHook, type GradBucket } from "./commHooks";
import { powerSgdHook } from "./commHooksPowerSgd";
import { bf16CompressHook, fp16CompressHook, int8CompressHook } from "./commHooksQuantized";
import { largest, topKHook } from "./commHooksTopK";
import { makeRanks } from "./testing/ranks";

const bucketOf = (values: ArrayLike<number>, shape: readonly number[] = [values.length]): GradBucket => ({
  index: 0,
  isLast: true,
  entries: [{ name: "weight", shape, offset: 0, length: values.length }],
  gradients: Float32Array.from(values),
});

/** Reduces each rank's values, several times over if wanted, and gives the results of all ranks at each time. */
async function reduceAll(
  make: () => CommHook,
  inputs: readonly ArrayLike<number>[],
  { times = 1, shape }: { readonly times?: number; readonly shape?: readonly number[] } = {},
): Promise<Float32Array[]> {
  const ranks = makeRanks(inputs.length);
  const hook = make();
  const buckets = inputs.map((values) => bucketOf(values, shape));
  const results: Float32Array[] = [];
  for (let time = 0; time < times; time += 1) {
    for (const [rank, values] of inputs.entries()) buckets[rank]!.gradients.set(values);
    await ranks.settle(Promise.all(ranks.groups.map((group, rank) => hook(buckets[rank]!, group))));
    const [first, ...others] = buckets.map(({ gradients }) => gradients.slice());
    for (const other of others) expect(other).toEqual(first);
    results.push(first!);
  }
  return results;
}

function randomInputs(worldSize: number, length: number, seed = 7): number[][] {
  const random = seededRandom(seed);
  return Array.from({ length: worldSize }, () => Array.from({ length }, () => Math.fround(2 * random() - 1)));
}

const sumsOf = (inputs: readonly number[][]) =>
  inputs[0]!.map((_, i) => inputs.reduce((sum, values) => sum + values[i]!, 0));

const hooks: Readonly<Record<string, { readonly make: () => CommHook; readonly error: number }>> = {
  "all-reduce": { make: () => allReduceHook, error: 1e-6 },
  // Values up to 1 are rounded to 11 or 8 bits once, and sums up to 4 once more.
  fp16: { make: () => fp16CompressHook, error: 4 * 2 ** -12 + 2 ** -10 },
  bf16: { make: () => bf16CompressHook, error: 4 * 2 ** -9 + 2 ** -7 },
  // Half of a 127th of the largest of a block, for each value and the sum.
  int8: { make: () => int8CompressHook({ blockLength: 8 }), error: (4 * 1 + 4) / 254 + 1e-6 },
  "top-k of everything": { make: () => topKHook({ ratio: 1 }), error: 1e-6 },
  "PowerSGD of what has one dimension": { make: () => powerSgdHook({ startPowerSgdIteration: 0 }), error: 1e-6 },
};

test.each(Object.entries(hooks))(
  "%s gives the sum within its rounding, the same bits on all ranks",
  async (_, { make, error }) => {
    for (const worldSize of [1, 2, 3, 4])
      for (const length of [1, 2, 17, 64]) {
        const inputs = randomInputs(worldSize, length);
        const [result] = await reduceAll(make, inputs);
        for (const [i, expected] of sumsOf(inputs).entries())
          expect(Math.abs(result![i]! - expected), `world ${worldSize}, value ${i} of ${length}`).toBeLessThanOrEqual(
            error,
          );
      }
  },
);

test.each(Object.entries(hooks))("%s lets no NaN and no infinity get lost, and forgets them", async (_, { make }) => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const ranks = makeRanks(3);
    const hook = make();
    const buckets = Array.from({ length: 3 }, () => bucketOf(new Float32Array(16)));
    const step = async (values: (rank: number) => number) => {
      for (const [rank, { gradients }] of buckets.entries()) gradients.fill(1).fill(values(rank), 5, 6);
      await ranks.settle(Promise.all(ranks.groups.map((group, rank) => hook(buckets[rank]!, group))));
      return buckets.map(({ gradients }) => Number.isFinite(gradients[5]));
    };
    expect(await step((rank) => (rank === 1 ? bad : 1))).toEqual([false, false, false]);
    expect(await step(() => 1)).toEqual([true, true, true]);
  }
});

test("the float16 mean of four times 60000 is 60000", async () => {
  const part = 60_000 / 4;
  const [result] = await reduceAll(() => fp16CompressHook, [[part], [part], [part], [part]]);
  expect([...result!]).toEqual([60_000]);
});

test.each<[string, (errorFeedback: boolean) => CommHook, number]>([
  // Half of a 127th of what three ranks and their sum hold.
  ["int8 by block", (errorFeedback) => int8CompressHook({ blockLength: 8, errorFeedback }), 0.03],
  // A tenth is sent in a step, so that each of three ranks keeps about ten steps' worth.
  ["top-k", (errorFeedback) => topKHook({ ratio: 0.1, errorFeedback }), 36],
])("error feedback of %s: what is left to send stays bounded, so nothing is lost", async (_, make, bound) => {
  const inputs = randomInputs(3, 40);
  const times = 200;
  const lost = async (errorFeedback: boolean) => {
    const results = await reduceAll(() => make(errorFeedback), inputs, { times });
    const sums = sumsOf(inputs).map((expected, i) => results.reduce((sum, result) => sum + result[i]! - expected, 0));
    return Math.max(...sums.map(Math.abs));
  };
  expect(await lost(true)).toBeLessThan(bound);
  expect(await lost(false)).toBeGreaterThan(4 * bound);
});

test("top-k sends the largest of each rank, and what is left later", async () => {
  const inputs = [
    [5, -1, 0.5, 0],
    [0, 2, -7, 0],
  ];
  const results = await reduceAll(() => topKHook({ ratio: 0.25 }), inputs, { times: 2 });
  expect([...results[0]!]).toEqual([5, 0, -7, 0]);
  // The second time rank 0 has [5, -2, 1, 0] and rank 1 [0, 4, -7, 0].
  expect([...results[1]!]).toEqual([5, 0, -7, 0]);
  const forgetful = await reduceAll(() => topKHook({ ratio: 0.5, errorFeedback: false }), inputs, { times: 2 });
  for (const result of forgetful) expect([...result]).toEqual([5, 1, -7, 0]);
  expect(() => topKHook({ ratio: 0 })).toThrow("the ratio is 0; it must be above 0 and at most 1");
});

test("the largest values are found by size, the first of equal ones, NaN before all", () => {
  const values = Float32Array.of(1, -3, 3, 1e-40, Number.NaN, 0, 3.0000002, -1);
  expect([...largest(values, 1)]).toEqual([4]);
  expect([...largest(values, 2)]).toEqual([4, 6]);
  expect([...largest(values, 3)]).toEqual([1, 4, 6]);
  expect([...largest(values, 5)]).toEqual([0, 1, 2, 4, 6]);
  expect([...largest(values, 8)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("PowerSGD is exact for what has the rank of its approximation", async () => {
  const [rows, columns] = [12, 9];
  const outer = (a: number, b: number) =>
    Array.from({ length: rows * columns }, (_, i) => (a + Math.floor(i / columns)) * (b - (i % columns)));
  const inputs = [outer(1, 3), outer(1, 3).map((value) => 2 * value)];
  const make = () => powerSgdHook({ startPowerSgdIteration: 0 });
  const [result] = await reduceAll(make, inputs, { shape: [rows, 3, 3] });
  for (const [i, expected] of sumsOf(inputs).entries()) expect(Math.abs(result![i]! - expected)).toBeLessThan(1e-3);
});

test("PowerSGD with error feedback loses nothing over many steps, and begins with plain all-reduces", async () => {
  const inputs = randomInputs(2, 16 * 12);
  const make = () => powerSgdHook({ startPowerSgdIteration: 2, matrixApproximationRank: 2 });
  const results = await reduceAll(make, inputs, { times: 80, shape: [16, 12] });
  const expected = sumsOf(inputs);
  for (const result of results.slice(0, 2))
    for (const [i, value] of expected.entries()) expect(Math.abs(result[i]! - value)).toBeLessThan(1e-6);
  const compressed = results.slice(2);
  const distance = (values: readonly number[]) => Math.hypot(...values.map((value, i) => value - expected[i]!));
  const mean = expected.map((_, i) => compressed.reduce((sum, result) => sum + result[i]!, 0) / compressed.length);
  expect(distance([...compressed[0]!])).toBeGreaterThan(0.5 * Math.hypot(...expected));
  expect(distance(mean)).toBeLessThan(0.1 * Math.hypot(...expected));
});

import { expect, test } from "vitest";
import { BucketReducer } from "./bucketReducer";
import type { CommHook } from "./commHooks";
import { fp16CompressHook } from "./commHooksQuantized";
import { heldBytes } from "./simulation/heldBytes";
import { layoutOf, simulateOverlap } from "./simulation/overlap";
import { makeRanks } from "./testing/ranks";

const slowLinks = { bytesPerSecond: 1e6, latencyMilliseconds: 5 };

test("a step takes at most 1.15 times the longer of compute and communication, where both are about equal", async () => {
  for (const worldSize of [2, 3, 4])
    for (const megabytes of [2, 8]) {
      const modelBytes = megabytes * 2 ** 20;
      const { buckets, step } = simulateOverlap({ peers: worldSize, modelBytes, layers: 32, ...slowLinks });
      const communication = await step(() => 0);
      // No less than the bytes take: the lines are busy all along.
      const bound = ((2 * (worldSize - 1)) / worldSize) * modelBytes * 1e-3;
      expect(communication).toBeGreaterThan(bound);
      expect(communication).toBeLessThan(1.05 * bound);
      for (const compute of [0.9 * communication, communication, 1.1 * communication])
        expect(
          (await step(() => compute)) / Math.max(compute, communication),
          `${worldSize} ranks, ${megabytes} MB, ${compute} of ${communication} ms`,
        ).toBeLessThan(1.15);
      for (const of of buckets)
        for (const { gradients } of of) expect(gradients.at(-1)).toBeCloseTo((worldSize + 1) / 2, 6);
    }
});

test("beside the reduced gradients a step holds at most twice the largest bucket a member, also where one is slow", async () => {
  const worldSize = 3;
  const { clock, buckets, step } = simulateOverlap({
    peers: worldSize,
    modelBytes: 2 ** 23,
    layers: 16,
    ...slowLinks,
  });
  const largest = Math.max(...buckets[0]!.map(({ gradients }) => gradients.byteLength));
  expect(largest).toBe(2 ** 19);
  await step(() => 0);
  await clock.advance(1000);
  const before = heldBytes();
  let most = 0;
  let isOver = false;
  let samples = 0;
  const sample = () => {
    const now = heldBytes() - before;
    most = Math.max(most, now);
    samples += 1;
    if (!isOver) clock.setTimeout(sample, 300);
  };
  clock.setTimeout(sample, 300);
  await step((rank) => (rank === 1 ? 15_000 : 5000));
  isOver = true;
  await clock.advance(300);
  expect(samples).toBeGreaterThan(40);
  // A slow rank keeps what the others send it of their first buckets.
  expect(most).toBeGreaterThan(largest / worldSize);
  expect(most / worldSize).toBeLessThanOrEqual(2 * largest);
});

test("two buckets are reduced at once and never three, begun in their order on all ranks", async () => {
  const { groups, settle, clock } = makeRanks(3);
  const layout = layoutOf(7, 2 ** 15);
  const reducers = groups.map((group) => new BucketReducer(group, layout, 1e-6));
  const begun: number[][] = groups.map(() => []);
  const most = groups.map(() => 0);
  const runs = reducers.map((reducer, rank) => {
    let running = 0;
    reducer.hook = async (bucket, group) => {
      begun[rank]!.push(bucket.index);
      running += 1;
      most[rank] = Math.max(most[rank]!, running);
      await fp16CompressHook(bucket, group);
      running -= 1;
    };
    for (const { index, gradients } of reducer.buckets) gradients.fill(10 * index + rank);
    // Every rank's buckets are there at other times.
    const ready = reducer.buckets.map(
      ({ index }) => new Promise<void>((resolve) => clock.setTimeout(resolve, ((7 * index + 3 * rank) % 5) * 40)),
    );
    return reducer.reduce(ready, 1);
  });
  await settle(Promise.all(runs));
  for (const order of begun) expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(most).toEqual([2, 2, 2]);
  for (const { buckets } of reducers)
    for (const { index, gradients } of buckets) expect(gradients[5]).toBe(30 * index + 3);
});

test("a bucket that fails ends the step on all ranks, with its reason, after what runs has ended", async () => {
  const { groups, settle } = makeRanks(2);
  const reducers = groups.map((group) => new BucketReducer(group, layoutOf(6, 1000), 1e-6));
  let running = 0;
  const hook: CommHook = async ({ index, gradients }, group) => {
    running += 1;
    const odd = index === 2 && group.rank === 1 ? 1 : 0;
    await group
      .allReduce(new Float32Array(gradients.length + odd))
      .wait()
      .finally(() => {
        running -= 1;
      });
  };
  for (const reducer of reducers) reducer.hook = hook;
  const outcomes = await settle(Promise.allSettled(reducers.map((reducer) => reducer.reduce([], 1))));
  expect(running).toBe(0);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      status: "rejected",
      reason: { message: expect.stringMatching(/Rank 0 called .*float32\[1000\].*rank 1 called .*float32\[1001\]/s) },
    });
  for (const reducer of reducers) reducer.destroy();
});

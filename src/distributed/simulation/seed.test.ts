import { expect, test } from "vitest";
import { simulateSeed } from "./seed";

const count = process.env.RINGLET_TEST_FULL ? 10_000 : 500;

test(
  `collectives end right or with a sentence on every rank, over ${count} seeds of delays, stalls and faults`,
  async () => {
    for (let seed = 1; seed <= count; seed += 1) {
      const { problems } = await simulateSeed(seed);
      expect(problems, `replay it by: npx ringlet simulate --seed ${seed}`).toEqual([]);
    }
  },
  count * 200,
);

test("a seed replays exactly", async () => {
  for (const seed of [2, 3, 7, 40]) expect(await simulateSeed(seed)).toEqual(await simulateSeed(seed));
});

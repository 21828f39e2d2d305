import { expect, test } from "vitest";
import { allGatherObject, broadcastObjectList, gatherObject, scatterObjectList } from "./objects";
import { makeRanks } from "./testing/ranks";

const nothing = (count: number) => new Array<null>(count).fill(null);
/** Objects of very different sizes. */
const objectOf = (rank: number) => ({ rank, text: "é".repeat(rank * 30_000), list: [1, null, [true]] });

test("objects of any size reach whom they are for, and other collectives go on around them", async () => {
  for (const worldSize of [1, 2, 3, 5]) {
    const { groups, outcomes } = makeRanks(worldSize);
    const gathered = groups.map((): unknown[] => []);
    const atRoot: unknown[] = [];
    const shared = groups.map(({ rank }): unknown[] => (rank === worldSize - 1 ? ["a", objectOf(2), 3] : [0, 0, 0]));
    const scattered = groups.map((): unknown[] => []);
    const sums = groups.map(() => Float32Array.of(1));
    const all = groups.map(({ rank }) => objectOf(rank));
    const works = groups.flatMap((group) => {
      const { rank } = group;
      return [
        allGatherObject(group, gathered[rank]!, objectOf(rank)),
        group.allReduce(sums[rank]!),
        gatherObject(group, objectOf(rank), rank === 0 ? atRoot : null, 0),
        broadcastObjectList(group, shared[rank]!, worldSize - 1),
        scatterObjectList(group, scattered[rank]!, rank === 0 ? all : null, 0),
      ];
    });
    expect(await outcomes(works)).toEqual(nothing(5 * worldSize));
    for (const list of [...gathered, atRoot]) expect(list).toEqual(all);
    for (const list of shared) expect(list).toEqual(["a", objectOf(2), 3]);
    for (const [rank, list] of scattered.entries()) expect(list).toEqual([all[rank]]);
    for (const sum of sums) expect(sum[0]).toBe(worldSize);
  }
});

test("what JSON can't hold is refused on every rank", async () => {
  const { groups, outcomes } = makeRanks(2);
  const works = groups.map((group) => allGatherObject(group, [], group.rank === 0 ? undefined : 1));
  const results = await outcomes(works);
  expect(results[0]).toContain("Objects travel as JSON, which has no undefined.");
  expect(results[1]).toContain("Rank 0 says: Objects travel as JSON, which has no undefined.");
  expect(await outcomes(groups.map((group) => group.barrier()))).toEqual(nothing(2));
});

test("lists of different lengths fail every rank", async () => {
  const { groups, outcomes } = makeRanks(3);
  const works = groups.map((group) => broadcastObjectList(group, group.rank === 2 ? [1] : [1, 2], 0));
  for (const outcome of await outcomes(works)) {
    expect(outcome).toContain("broadcastObjectList of 2 objects from rank 0");
    expect(outcome).toContain("broadcastObjectList of 1 objects from rank 0");
  }
});

import { expect, test } from "vitest";
import type { ProcessGroup } from "./processGroup";
import { idOf, makeRanks } from "./testing/ranks";

const present = (groups: readonly (ProcessGroup | null)[]) => groups.filter((group) => group !== null);

test("a new group has ranks of its own, in the order given, and its own collectives", async () => {
  const { groups, outcomes } = makeRanks(4);
  const odd = present(groups.map((group) => group.newGroup([3, 1])));
  const all = groups.map(({ rank }) => Float32Array.of(rank));
  const some = odd.map(({ rank }) => Float32Array.of(rank === 0 ? 3 : 1));
  const copied = [Float32Array.of(10), Float32Array.of(11)];
  const works = [
    ...odd.map((group) => group.allReduce(some[1 - group.rank]!)),
    ...groups.map((group) => group.allReduce(all[group.rank]!)),
    ...odd.map((group) => group.broadcast(copied[group.rank]!, 0)),
  ];
  expect(await outcomes(works)).toEqual(new Array(8).fill(null));
  expect(copied.map((values) => values[0])).toEqual([10, 10]);
  expect(odd.map(({ rank, worldSize, ranks }) => [rank, worldSize, ranks])).toEqual([
    [1, 2, [3, 1]],
    [0, 2, [3, 1]],
  ]);
  expect(all.map((values) => values[0])).toEqual([6, 6, 6, 6]);
  expect(some.map((values) => values[0])).toEqual([4, 4]);
});

test("ranks translate both ways", () => {
  const { groups } = makeRanks(4);
  const [group] = present(groups.map((each) => each.newGroup([3, 1])));
  expect([group!.getGlobalRank(0), group!.getGlobalRank(1)]).toEqual([3, 1]);
  expect([group!.getGroupRank(3), group!.getGroupRank(1)]).toEqual([0, 1]);
  expect(() => group!.getGlobalRank(2)).toThrow("there is no rank 2 in a group of 2");
  expect(() => group!.getGroupRank(0)).toThrow("rank 0 isn't in the group of ranks 3, 1");
});

test("subgroups split the world into equal runs of ranks", async () => {
  const { groups, outcomes } = makeRanks(6);
  const own = groups.map((group) => group.newSubgroups(2));
  expect(own.map(({ ranks }) => ranks)).toEqual([
    [0, 1],
    [0, 1],
    [2, 3],
    [2, 3],
    [4, 5],
    [4, 5],
  ]);
  const data = groups.map(({ rank }) => Float32Array.of(rank));
  expect(await outcomes(own.map((group, rank) => group.allReduce(data[rank]!, "avg")))).toEqual(
    new Array(6).fill(null),
  );
  expect(data.map((values) => values[0])).toEqual([0.5, 0.5, 2.5, 2.5, 4.5, 4.5]);
  expect(() => groups[0]!.newSubgroups(4)).toThrow("a world of 6 can't be split into groups of 4");
});

test("a rank that is ahead may use a group that another hasn't made yet", async () => {
  const { clock, groups, outcomes } = makeRanks(2);
  const data = groups.map(({ rank }) => Float32Array.of(rank + 1));
  const early = groups[0]!.newGroup([0, 1])!.allReduce(data[0]!);
  await clock.advance(100);
  const late = groups[1]!.newGroup([0, 1])!.allReduce(data[1]!);
  expect(await outcomes([early, late])).toEqual([null, null]);
  expect(data.map((values) => values[0])).toEqual([3, 3]);
});

test("groups of different ranks under one number are told apart", async () => {
  const { groups, outcomes } = makeRanks(3);
  const works = [groups[0]!.newGroup([0, 1])!.barrier(), groups[1]!.newGroup([0, 1, 2])!.barrier()];
  for (const outcome of await outcomes(works)) expect(outcome).not.toBeNull();
});

test("a rank that left isn't counted: a group of the others takes their mean", async () => {
  for (const leave of [(group: ProcessGroup) => group.destroy(), null]) {
    const { clock, hub, groups, outcomes } = makeRanks(3);
    const before = present(groups.map((group) => group.newGroup([0, 2])));
    if (leave === null) hub.kill(idOf(1));
    else leave(groups[1]!);
    await clock.advance(100);
    const after = present([groups[0]!, groups[2]!].map((group) => group.newGroup([0, 2])));
    for (const pair of [before, after]) {
      const data = pair.map(({ rank }) => Float32Array.of(10 * rank + 2));
      expect(await outcomes(pair.map((group) => group.allReduce(data[group.rank]!, "avg")))).toEqual([null, null]);
      expect(data.map((values) => values[0])).toEqual([7, 7]);
    }
    expect((await outcomes([groups[0]!.barrier()]))[0]).toMatch(/Rank 1 (left|is gone)/);
  }
});

test("a destroyed group leaves the others usable", async () => {
  const { groups, outcomes } = makeRanks(2);
  const pair = present(groups.map((group) => group.newGroup([0, 1])));
  for (const group of pair) group.destroy();
  expect((await outcomes([pair[0]!.barrier()]))[0]).toContain("The process group was destroyed.");
  expect(await outcomes(groups.map((group) => group.barrier()))).toEqual([null, null]);
});

test("impossible groups are refused", () => {
  const { groups } = makeRanks(3);
  for (const ranks of [[], [0, 0], [3], [0.5]])
    expect(() => groups[0]!.newGroup(ranks)).toThrow("aren't different ranks of a world of 3");
  const inner = groups[0]!.newGroup([0, 1]);
  expect(() => inner!.newGroup([0])).toThrow("groups are made from the group of the whole world");
});

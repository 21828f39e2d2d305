import { describe, expect, test } from "vitest";
import { recursiveDoubling } from "./algorithms/doubling";
import { ringAllReduce } from "./algorithms/ring";
import type { ProcessGroup } from "./processGroup";
import { idOf, makeRanks } from "./testing/ranks";
import type { Work } from "./work";

/** One rank does something else than the others do. */
const differences: readonly [
  string,
  (group: ProcessGroup) => Work,
  (group: ProcessGroup) => Work,
  readonly string[],
][] = [
  [
    "lengths",
    (group) => group.allReduce(new Float32Array(8)),
    (group) => group.allReduce(new Float32Array(9)),
    ["allReduce (sum) of float32[8]", "allReduce (sum) of float32[9]"],
  ],
  [
    "a length and none",
    (group) => group.allReduce(new Float32Array(8)),
    (group) => group.allReduce(new Float32Array(0)),
    ["of float32[8]", "of float32[0]"],
  ],
  [
    "types of the same size",
    (group) => group.allReduce(new Float32Array(8)),
    (group) => group.allReduce(new Int32Array(8)),
    ["of float32[8]", "of int32[8]"],
  ],
  [
    "operations",
    (group) => group.allReduce(new Float32Array(8), "sum"),
    (group) => group.allReduce(new Float32Array(8), "max"),
    ["allReduce (sum)", "allReduce (max)"],
  ],
  [
    "algorithms",
    (group) => group.allReduce(new Float32Array(8), "sum", { algorithm: ringAllReduce }),
    (group) => group.allReduce(new Float32Array(8), "sum", { algorithm: recursiveDoubling }),
    ["by ring", "by recursive doubling"],
  ],
  [
    "collectives",
    (group) => group.barrier(),
    (group) => group.broadcast(new Float32Array(2), 0),
    ["barrier", "broadcast of float32[2] from rank 0"],
  ],
  [
    "roots",
    (group) => group.broadcast(new Float32Array(2), 0),
    (group) => group.broadcast(new Float32Array(2), 1),
    ["from rank 0", "from rank 1"],
  ],
  [
    "lengths in a broadcast, where the root waits for nobody",
    (group) => group.broadcast(new Float32Array(20_000), 0),
    (group) => group.broadcast(new Float32Array(20_001), 0),
    ["float32[20000]", "float32[20001]"],
  ],
  [
    "lengths in a reduce",
    (group) => group.reduce(new Float32Array(5), 0),
    (group) => group.reduce(new Float32Array(6), 0),
    ["float32[5]", "float32[6]"],
  ],
  [
    "lengths in an all-gather",
    (group) =>
      group.allGather(
        Array.from({ length: group.worldSize }, () => new Uint8Array(3)),
        new Uint8Array(3),
      ),
    (group) =>
      group.allGather(
        Array.from({ length: group.worldSize }, () => new Uint8Array(4)),
        new Uint8Array(4),
      ),
    ["uint8[3]", "uint8[4]"],
  ],
];

describe("a rank that differs from the others in", () => {
  test.each(differences)(
    "%s makes every rank fail with both sides, and the next collective works",
    async (_, usual, odd, parts) => {
      for (const worldSize of [2, 3, 4, 5])
        for (let who = 0; who < worldSize; who += 1) {
          const { groups, outcomes } = makeRanks(worldSize, 10 * worldSize + who);
          const started = groups.map((group) => (group.rank === who ? odd(group) : usual(group)));
          for (const [rank, outcome] of (await outcomes(started)).entries()) {
            expect(outcome, `rank ${rank} of ${worldSize}, ${who} differs`).not.toBeNull();
            expect(outcome).toContain(`rank ${rank}`.replace("r", "R"));
            for (const part of parts) expect(outcome).toContain(part);
            expect(outcome).toMatch(new RegExp(`[Rr]ank ${who} called `));
          }
          const data = groups.map(() => Float32Array.of(1));
          expect(await outcomes(groups.map((group) => group.allReduce(data[group.rank]!)))).toEqual(
            new Array(worldSize).fill(null),
          );
          expect(data.map((values) => values[0])).toEqual(new Array(worldSize).fill(worldSize));
        }
    },
  );
});

test("parts of an all-to-all that differ in length fail every rank and name who sent what", async () => {
  const { groups, outcomes } = makeRanks(3);
  const works = groups.map((group) =>
    group.allToAll(
      [0, 1, 2].map((from) => new Float32Array(from === 0 && group.rank === 2 ? 3 : 4)),
      [0, 1, 2].map(() => new Float32Array(4)),
    ),
  );
  for (const outcome of await outcomes(works))
    expect(outcome).toMatch(/Rank 0: got 16 bytes at offset 0, expected 12 bytes at offset 0/);
});

test("what one rank can't begin fails on all, and names it", async () => {
  const { groups, outcomes } = makeRanks(3);
  const works = groups.map((group) => group.scatter(new Float32Array(2), null, 1));
  expect(await outcomes(works)).toEqual([
    "Rank 0: scatter #0 of float32[2] from rank 1 failed. Rank 1 says: scatter takes 3 inputs in a world of 3, and got none.",
    "Rank 1: scatter #0 failed. scatter takes 3 inputs in a world of 3, and got none.",
    "Rank 2: scatter #0 of float32[2] from rank 1 failed. Rank 1 says: scatter takes 3 inputs in a world of 3, and got none.",
  ]);
});

test("impossible roots are refused", async () => {
  const { groups, outcomes } = makeRanks(2);
  const works = groups.flatMap((group) => [
    group.broadcast(new Float32Array(1), 2),
    group.reduce(new Float32Array(1), -1),
  ]);
  const results = await outcomes(works);
  expect(results[0]).toBe("Rank 0: broadcast #0 failed. broadcast: there is no rank 2 in a group of 2.");
  expect(results[3]).toBe("Rank 1: reduce #1 failed. reduce: there is no rank -1 in a group of 2.");
});

test("a time-out says on every rank who waits for whom, and since when", async () => {
  const { clock, groups, outcomes } = makeRanks(3, 5, 10_000);
  await outcomes(groups.map((group) => group.barrier()));
  const works = [0, 1].map((rank) => groups[rank]!.allReduce(new Float32Array(4)));
  await clock.advance(5000);
  expect(groups[0]!.dumpFlightRecorder().split("\n")).toEqual([
    expect.stringMatching(/^group 0: #0 barrier of all ranks by dissemination: done \d\.\d s ago$/),
    expect.stringMatching(
      /^group 0: #1 allReduce \(sum\) of float32\[4\] by recursive doubling: waits for rank 2 since \d\.\d s, 0 of 32 bytes have come$/,
    ),
  ]);
  for (const [rank, outcome] of (await outcomes(works)).entries()) {
    expect(outcome).toContain(`Rank ${rank}: allReduce #1 (sum) of float32[4] failed.`);
    expect(outcome).toMatch(/Waited 10\.0 s for rank [02]/);
    expect(outcome).toMatch(/\n {2}rank 0: #1 allReduce .*: waits for rank 2 since 1\d\.\d s, 0 of 32 bytes have come/);
    expect(outcome).toMatch(
      /\n {2}rank 2: hasn't called it; last: #0 barrier of all ranks by dissemination: done 1\d\.\d s ago/,
    );
  }
  const late = groups[2]!.allReduce(new Float32Array(4));
  expect((await outcomes([late]))[0]).toMatch(/Rank [01] says: Waited 10\.0 s/);
});

test("an aborted collective fails everywhere with its reason", async () => {
  const { clock, groups, outcomes } = makeRanks(3);
  const works = groups.slice(0, 2).map((group) => group.allReduce(new Float32Array(4)));
  await clock.advance(5);
  works[1]!.abort("The person pressed stop.");
  expect(await outcomes(works)).toEqual([
    "Rank 0: allReduce #0 (sum) of float32[4] failed. Rank 1 says: The person pressed stop.",
    "Rank 1: allReduce #0 (sum) of float32[4] failed. The person pressed stop.",
  ]);
  expect(await outcomes([groups[2]!.allReduce(new Float32Array(4))])).toEqual([
    "Rank 2: allReduce #0 (sum) of float32[4] failed. Rank 1 says: The person pressed stop.",
  ]);
});

/** What each algorithm does, so that it can be cut short at every message. */
const algorithms: readonly [string, (group: ProcessGroup, data: Float32Array<ArrayBuffer>) => Work][] = [
  ["ring all-reduce", (group, data) => group.allReduce(data, "sum", { algorithm: ringAllReduce })],
  ["recursive doubling", (group, data) => group.allReduce(data, "sum", { algorithm: recursiveDoubling })],
  ["broadcast", (group, data) => group.broadcast(data, 1)],
  ["reduce", (group, data) => group.reduce(data, 1)],
  ["all-gather", (group, data) => group.allGatherIntoTensor(new Float32Array(4 * data.length), data)],
  ["reduce-scatter", (group, data) => group.reduceScatterTensor(new Float32Array(data.length / 4), data)],
  [
    "all-to-all",
    (group, data) =>
      group.allToAll(
        [0, 1, 2, 3].map(() => new Float32Array(data.length)),
        [data, data, data, data],
      ),
  ],
  [
    "gather",
    (group, data) =>
      group.gather(data, group.rank === 2 ? [0, 1, 2, 3].map(() => new Float32Array(data.length)) : null, 2),
  ],
  [
    "scatter",
    (group, data) =>
      group.scatter(data, group.rank === 2 ? [0, 1, 2, 3].map(() => new Float32Array(data.length)) : null, 2),
  ],
  ["barrier", (group) => group.barrier()],
];

describe.each(algorithms)("%s", (_, begin) => {
  test("aborted at every moment settles on every rank, and leaves no timer and no early bytes", async () => {
    for (let moment = 0; moment <= 60; moment += 3) {
      const { clock, groups, outcomes } = makeRanks(4, moment);
      const works = groups.map((group) => begin(group, new Float32Array(40).fill(1)));
      await clock.advance(moment);
      works[moment % 4]!.abort("Stopped.");
      const results = await outcomes(works);
      for (const outcome of results) if (outcome !== null) expect(outcome).toContain("Stopped.");
      // The group goes on.
      const after = groups.map(() => Float32Array.of(1));
      expect(await outcomes(groups.map((group) => group.allReduce(after[group.rank]!)))).toEqual([
        null,
        null,
        null,
        null,
      ]);
      expect(after.map((values) => values[0])).toEqual([4, 4, 4, 4]);
      await clock.advance(60_000);
      expect(clock.nextDue).toBeNull();
    }
  });

  test("with a rank that dies at any moment settles on every other, and says who died", async () => {
    for (let moment = 0; moment <= 60; moment += 3) {
      const { clock, hub, groups, outcomes } = makeRanks(4, moment);
      const works = groups.map((group) => begin(group, new Float32Array(40).fill(1)));
      await clock.advance(moment);
      hub.kill(idOf(3));
      const results = await outcomes(works.slice(0, 3));
      for (const outcome of results) if (outcome !== null) expect(outcome).toContain("Rank 3 is gone.");
      expect((await outcomes([groups[0]!.barrier()]))[0]).toContain("Rank 3 is gone.");
    }
  });
});

test("a monitored barrier names who is missing, to all that came", async () => {
  const { clock, groups, outcomes } = makeRanks(5);
  const works = [0, 1, 3].map((rank) => groups[rank]!.monitoredBarrier(2000));
  const sentence = "Rank 2, 4 of 5 didn't come within 2 s.";
  expect(await outcomes(works)).toEqual([0, 1, 3].map((rank) => `Rank ${rank}: monitoredBarrier failed. ${sentence}`));
  expect(clock.now()).toBeLessThan(2100);
});

test("a monitored barrier lets all pass when all come", async () => {
  const { clock, groups, outcomes } = makeRanks(4);
  const works = [0, 1, 2].map((rank) => groups[rank]!.monitoredBarrier());
  await clock.advance(1000);
  expect(works.map((work) => work.isCompleted)).toEqual([false, false, false]);
  works.push(groups[3]!.monitoredBarrier());
  expect(await outcomes(works)).toEqual([null, null, null, null]);
});

test("a fast rank that is ahead by many collectives is buffered, and one that floods is dropped with a sentence", async () => {
  const { clock, groups, outcomes } = makeRanks(2);
  const fast = Array.from({ length: 30 }, (_, index) => groups[0]!.allReduce(new Float32Array(1000).fill(index)));
  await clock.advance(1000);
  const data = Array.from({ length: 30 }, (_, index) => new Float32Array(1000).fill(index));
  const slow = data.map((values) => groups[1]!.allReduce(values));
  expect(await outcomes([...fast, ...slow])).toEqual(new Array(60).fill(null));
  expect(data.map((values) => values[999])).toEqual(Array.from({ length: 30 }, (_, index) => 2 * index));
  const chunk = new Float32Array(4_000_000);
  const flood = Array.from({ length: 10 }, () => groups[0]!.allReduce(chunk));
  await clock.advance(1000);
  for (const outcome of await outcomes(flood))
    expect(outcome).toMatch(/of operations that this member hasn't started, expected at most 67108864/);
});

test("types that differ between send and recv are named", async () => {
  const { groups, outcomes } = makeRanks(2);
  const works = [groups[0]!.send(Int32Array.of(1, 2), 1, 4), groups[1]!.recv(new Float32Array(2), 0, 4)];
  expect((await outcomes(works))[1]).toBe("Recv from rank 0, tag 4, failed. Got int32, expected float32.");
});

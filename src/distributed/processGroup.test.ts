import { describe, expect, test } from "vitest";
import { VirtualClock } from "../base/virtualClock";
import { InProcessHub } from "../transport/inProcess";
import { memberId } from "../transport/memberId";
import { type Backend, registerBackend } from "./backends";
import { createProcessGroup } from "./defaultGroup";
import type { Meeting } from "./formWorld";
import type { ProcessGroup } from "./processGroup";

const idOf = (rank: number) => memberId((7 * rank + 3).toString(16).padStart(32, "c"));

/** Ranks of one hub; `absent` ones never come. */
async function start(worldSize: number, seed: number, absent: readonly number[] = []) {
  const clock = new VirtualClock();
  const hub = new InProcessHub({ clock, seed, latency: [1, 15] });
  let isFound = false;
  const groups: Promise<ProcessGroup>[] = [];
  for (let rank = 0; rank < worldSize; rank += 1) {
    if (absent.includes(rank)) continue;
    const network = hub.join(idOf(rank));
    const meeting: Meeting = {
      network,
      claim: async () => {
        isFound = true;
      },
      contact: async () => {
        if (!isFound) throw new Error("Nobody runs this job any more.");
        return hub.connect(network.self, idOf(0));
      },
    };
    // Later ranks come first.
    const delay = 20 * (worldSize - rank);
    groups.push(
      new Promise<void>((resolve) => clock.setTimeout(resolve, delay)).then(() =>
        createProcessGroup({ meeting, rank, worldSize, timeoutMilliseconds: 10_000, clock }),
      ),
    );
  }
  return { clock, hub, groups };
}

/** Runs virtual time until `promise` settles. */
async function settle<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let over = false;
  const mark = () => {
    over = true;
  };
  promise.then(mark, mark);
  expect(await clock.runUntil(() => over)).toBe(true);
  return promise;
}

async function makeWorld(worldSize: number, seed = worldSize) {
  const { clock, hub, groups } = await start(worldSize, seed);
  return { clock, hub, groups: await settle(clock, Promise.all(groups)) };
}

describe("forming a world", () => {
  test.each([1, 2, 3, 5])("of %i links every rank to every other", async (worldSize) => {
    const { groups } = await makeWorld(worldSize);
    expect(groups.map((group) => [group.rank, group.worldSize])).toEqual(
      Array.from({ length: worldSize }, (_, rank) => [rank, worldSize]),
    );
  });

  test("names the ranks that don't come", async () => {
    const { clock, groups } = await start(3, 1, [2]);
    await expect(settle(clock, Promise.all(groups))).rejects.toThrow(
      /Rank [01] of 3 waited 10 s for rank 2|for rank [01], 2/,
    );
  });

  test("refuses impossible ranks", async () => {
    await expect(createProcessGroup({ rank: 2, worldSize: 2 })).rejects.toThrow("There is no rank 2 in a world of 2");
  });
});

describe("collectives", () => {
  test("all-reduce sums or averages in place, several at once", async () => {
    const { clock, groups } = await makeWorld(3);
    const sums = groups.map(({ rank }) => Float32Array.of(rank, 1, 10 * rank));
    const means = groups.map(({ rank }) => new Float32Array(1000).fill(rank));
    const works = groups.flatMap((group) => [
      group.allReduce(sums[group.rank]!),
      group.allReduce(means[group.rank]!, "avg"),
    ]);
    await settle(clock, Promise.all(works.map((work) => work.wait())));
    for (const values of sums) expect([...values]).toEqual([3, 3, 30]);
    for (const values of means) expect([...values]).toEqual(new Array(1000).fill(1));
    expect(works.map((work) => [work.isCompleted, work.exception])).toEqual(new Array(6).fill([true, null]));
  });

  test("broadcast copies one rank's values to all", async () => {
    const { clock, groups } = await makeWorld(4);
    const data = groups.map(({ rank }) => Float32Array.from({ length: 20_000 }, (_, index) => rank * 100_000 + index));
    await settle(clock, Promise.all(groups.map((group) => group.broadcast(data[group.rank]!, 2).wait())));
    for (const values of data) expect(Buffer.compare(Buffer.from(values.buffer), Buffer.from(data[2]!.buffer))).toBe(0);
  });

  test("a barrier holds until the last rank comes", async () => {
    const { clock, groups } = await makeWorld(3);
    const works = [groups[0]!.barrier(), groups[1]!.barrier()];
    await clock.advance(5000);
    expect(works.map((work) => work.isCompleted)).toEqual([false, false]);
    works.push(groups[2]!.barrier());
    await settle(clock, Promise.all(works.map((work) => work.wait())));
  });

  test("send and recv pair up by tag and order, whoever is first", async () => {
    const { clock, groups } = await makeWorld(2);
    const [first, second, other] = [new Float32Array(40_000), new Float32Array(2), new Float32Array(0)];
    const works = [
      groups[1]!.recv(first, 0),
      groups[0]!.send(Float32Array.of(7), 1, 5),
      groups[0]!.send(new Float32Array(40_000).fill(3), 1),
      groups[0]!.send(Float32Array.of(1, 2), 1),
      groups[0]!.send(new Float32Array(0), 1, 9),
    ];
    await settle(clock, Promise.all(works.map((work) => work.wait())));
    const tagged = new Float32Array(1);
    const late = [groups[1]!.recv(second, 0), groups[1]!.recv(tagged, 0, 5), groups[1]!.recv(other, 0, 9)];
    await settle(clock, Promise.all(late.map((work) => work.wait())));
    expect([first[0], first[39_999], ...second, ...tagged]).toEqual([3, 3, 1, 2, 7]);
  });
});

describe("what goes wrong", () => {
  test("a rank that dies ends every rank's collectives with its number", async () => {
    const { clock, hub, groups } = await makeWorld(4);
    const works = groups.slice(0, 3).map((group) => group.allReduce(new Float32Array(4)));
    await clock.advance(30);
    hub.kill(idOf(3));
    const results = await settle(clock, Promise.allSettled(works.map((work) => work.wait())));
    expect(results.map((result) => result.status === "rejected" && result.reason.message)).toEqual(
      new Array(3).fill(expect.stringContaining("Rank 3 is gone. Member")),
    );
  });

  test("a rank that leaves right after a collective doesn't disturb those that still finish it", async () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const { clock, groups } = await makeWorld(4, seed);
      const data = groups.map(() => new Float32Array(1000).fill(1));
      const ends = groups.map(async (group) => {
        await group.allReduce(data[group.rank]!).wait();
        group.destroy();
      });
      await settle(clock, Promise.all(ends));
      for (const values of data) expect([...values], `seed ${seed}`).toEqual(new Array(1000).fill(4));
    }
  });

  test("a collective after a rank has left fails and names it", async () => {
    const { clock, groups } = await makeWorld(3);
    groups[1]!.destroy();
    await clock.advance(100);
    await expect(settle(clock, groups[0]!.barrier().wait())).rejects.toThrow("Rank 1 left the process group.");
  });

  test("a message of another length is refused with both lengths", async () => {
    const { clock, groups } = await makeWorld(2);
    groups[0]!.send(Float32Array.of(1, 2, 3), 1);
    await expect(settle(clock, groups[1]!.recv(new Float32Array(2), 0).wait())).rejects.toThrow(
      "Recv from rank 0, tag 0, failed. Got 12 bytes at offset 0 of 12, expected offset 0 of 8.",
    );
  });

  test("a message that never comes times out, and one from a dead rank fails at once", async () => {
    const { clock, hub, groups } = await makeWorld(2);
    await expect(settle(clock, groups[0]!.recv(new Float32Array(1), 1).wait())).rejects.toThrow(
      "Recv from rank 1, tag 0, failed. Nothing came for 10.0 s.",
    );
    const work = groups[0]!.recv(new Float32Array(1), 1);
    await clock.advance(1);
    hub.kill(idOf(1));
    await expect(settle(clock, work.wait())).rejects.toThrow("Rank 1 is gone.");
  });

  test("an aborted work rejects with the reason", async () => {
    const { clock, groups } = await makeWorld(2);
    const work = groups[0]!.allReduce(new Float32Array(4));
    await clock.advance(1);
    work.abort("The script ended.");
    await expect(settle(clock, work.wait())).rejects.toThrow("The script ended.");
    expect(work.exception?.message).toContain("The script ended.");
  });
});

describe("backends", () => {
  test("of one's own bring ranks together over any network", async () => {
    const hub = new InProcessHub();
    const meet: Backend = async ({ rank }) => {
      const network = hub.join(idOf(rank));
      return { network, claim: async () => {}, contact: async () => hub.connect(network.self, idOf(0)) };
    };
    registerBackend("hub", meet);
    expect(() => registerBackend("hub", meet)).toThrow('There is a backend "hub" already.');
    const groups = await Promise.all(
      [0, 1, 2].map((rank) => createProcessGroup({ backend: "hub", rank, worldSize: 3, timeoutMilliseconds: 5000 })),
    );
    const data = groups.map(({ rank }) => Float32Array.of(rank));
    await Promise.all(groups.map((group) => group.allReduce(data[group.rank]!).wait()));
    expect(data.map((values) => values[0])).toEqual([3, 3, 3]);
  });

  test("that nobody registered are refused with what there is", async () => {
    await expect(createProcessGroup({ backend: "nccl", rank: 0, worldSize: 2 })).rejects.toThrow(
      /There is no backend "nccl"; there are: webrtc/,
    );
  });
});

import { describe, expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { VirtualClock } from "../base/virtualClock";
import { InProcessHub } from "../transport/inProcess";
import type { MemberId, Network } from "../transport/link";
import { memberId } from "../transport/memberId";
import { Ring, type RingOptions } from "./ring";
import { CollectiveError } from "./work";

const idOf = (index: number) => memberId(index.toString(16).padStart(32, "a"));

/** Members in one hub, each with a ring over its links. */
function makeWorld(worldSize: number, seed: number, options: Partial<RingOptions> = {}) {
  const clock = new VirtualClock();
  const hub = new InProcessHub({ clock, seed, latency: [1, 20] });
  const ids = Array.from({ length: worldSize }, (_, index) => idOf(index));
  const networks = ids.map((id) => hub.join(id));
  for (const [index, a] of ids.entries()) for (const b of ids.slice(index + 1)) hub.connect(a, b);
  const rings = networks.map((network) => {
    const link = (member: MemberId) => network.links.get(member);
    const ring = new Ring({
      self: network.self,
      members: ids,
      epoch: 7,
      send: (to, header, payload) => link(to)?.send(header, payload),
      drained: (to) => link(to)?.drained() ?? Promise.resolve(),
      chunkBytes: 16,
      timeoutMilliseconds: 5000,
      clock,
      ...options,
    });
    listen(network, ring);
    return ring;
  });
  return { clock, hub, ids, networks, rings };
}

function listen(network: Network, ring: Ring): void {
  for (const link of network.links.values()) {
    link.onFrame = (frame) => ring.receive(link.peer, frame);
    link.onClose = (reason) => ring.abort(reason);
  }
}

const chunk = (step: number, channel: number, offset: number, length: number, epoch = 7) => ({
  kind: "chunk" as const,
  epoch,
  step,
  channel,
  offset,
  payload: new Uint8Array(length),
});

describe("several all-reduces at once", () => {
  test.each([1, 2, 3, 4, 5])(
    "in a world of %i end with the same bits on all members, whoever is early",
    async (worldSize) => {
      const seed = 40 + worldSize;
      const random = seededRandom(seed);
      const { clock, rings } = makeWorld(worldSize, seed);
      const lengths = [0, 1, 13, 101];
      const data = rings.map((_, rank) => lengths.map((length) => new Float32Array(length).fill(rank + 1)));
      const sum = (worldSize * (worldSize + 1)) / 2;
      let settled = 0;
      for (const [rank, ring] of rings.entries())
        clock.setTimeout(async () => {
          for (let step = 0; step < 3; step += 1) {
            for (const values of data[rank]!) values.fill((rank + 1) * (step + 1));
            await Promise.all(data[rank]!.map((values, channel) => ring.allReduce(values, { step, channel }).wait()));
            for (const values of data[rank]!) expect([...values]).toEqual([...values].fill(sum * (step + 1)));
          }
          settled += 1;
        }, random() * 100);
      expect(await clock.runUntil(() => settled === worldSize), `seed ${seed}`).toBe(true);
      for (const ring of rings) expect([ring.aborted, ring.ignored, ring.earlyBytes]).toEqual([null, 0, 0]);
    },
  );
});

describe("abort", () => {
  test("at every moment settles everything on every member, and what was complete stays so", async () => {
    for (let moment = 0; moment <= 240; moment += 4) {
      const { clock, rings } = makeWorld(3, moment);
      const data = rings.map((_, rank) => new Float32Array(23).fill(rank + 1));
      const works = rings.map((ring, rank) => ring.allReduce(data[rank]!, { step: 1, channel: 0 }));
      const outcomes = works.map(async (work) => {
        try {
          await work.wait();
          return "complete";
        } catch (error) {
          return error instanceof CollectiveError ? error.message : String(error);
        }
      });
      await clock.advance(moment);
      for (const ring of rings) ring.abort("The person stopped it.");
      const results = Promise.all(outcomes);
      let settled: readonly string[] | null = null;
      results.then((value) => {
        settled = value;
      });
      expect(await clock.runUntil(() => settled !== null), `moment ${moment}`).toBe(true);
      for (const [rank, outcome] of (await results).entries()) {
        expect(works[rank]!.isCompleted).toBe(true);
        if (outcome === "complete") {
          expect(works[rank]!.exception).toBeNull();
          expect([...data[rank]!]).toEqual(new Array(23).fill(6));
        } else expect(outcome).toBe("All-reduce of step 1, channel 0 failed. The person stopped it.");
      }
      await clock.advance(1000);
      expect(clock.nextDue, "no timer is left").toBeNull();
    }
  });

  test("of a ring refuses what is started later", async () => {
    const { rings } = makeWorld(2, 1);
    rings[0]!.abort("Member bbbb left.");
    const work = rings[0]!.allReduce(new Float32Array(4), { step: 1, channel: 0 });
    await expect(work.wait()).rejects.toThrow("All-reduce of step 1, channel 0 failed. Member bbbb left.");
  });

  test("of one operation leaves the others alone, and its late chunks are ignored", async () => {
    const { clock, rings } = makeWorld(2, 3);
    const data = rings.map((_, rank) => new Float32Array(40).fill(rank + 1));
    const kept = rings.map((ring, rank) => ring.allReduce(data[rank]!, { step: 1, channel: 0 }));
    const dropped = rings.map((ring) => ring.allReduce(new Float32Array(40), { step: 1, channel: 1 }));
    for (const work of dropped) work.abort("Not needed.");
    await clock.advance(1000);
    expect(kept.map((work) => [work.isCompleted, work.exception])).toEqual([
      [true, null],
      [true, null],
    ]);
    expect([...data[1]!]).toEqual(new Array(40).fill(3));
    await expect(dropped[0]!.wait()).rejects.toThrow("Not needed.");
    expect(rings.map((ring) => ring.ignored)).toEqual([5, 5]);
  });

  test("settles only when nothing of the data is queued any more", async () => {
    let release = () => {};
    const { clock, rings } = makeWorld(2, 3, { drained: () => new Promise((resolve) => (release = resolve)) });
    const work = rings[0]!.allReduce(new Float32Array(4), { step: 1, channel: 0 });
    work.abort("Not needed.");
    await clock.advance(100);
    expect(work.isCompleted).toBe(false);
    release();
    await expect(work.wait()).rejects.toThrow("Not needed.");
  });

  test("a member that dies at any moment ends the ring of the others", async () => {
    for (let moment = 0; moment <= 200; moment += 7) {
      const { clock, hub, ids, rings } = makeWorld(4, moment);
      const data = rings.map(() => new Float32Array(57).fill(1));
      const works = rings.map((ring, rank) => ring.allReduce(data[rank]!, { step: 1, channel: 0 }));
      await clock.advance(moment);
      hub.kill(ids[2]!);
      await clock.advance(30);
      for (const rank of [0, 1, 3]) {
        expect(works[rank]!.isCompleted, `moment ${moment}`).toBe(true);
        if (works[rank]!.exception === null) expect([...data[rank]!]).toEqual(new Array(57).fill(4));
      }
    }
  });
});

test("a time-out names who is waited for and for how long, and counts from the last chunk", async () => {
  const { clock, rings, ids } = makeWorld(3, 2);
  const works = [0, 1].map((rank) => rings[rank]!.allReduce(new Float32Array(30), { step: 9, channel: 2 }));
  await clock.advance(4990);
  expect(works[0]!.isCompleted).toBe(false);
  await clock.advance(200);
  await expect(works[0]!.wait()).rejects.toThrow(
    `All-reduce of step 9, channel 2 failed. Waited 5.0 s for member ${ids[2]!.slice(0, 8)}: 0 of 160 bytes have come.`,
  );
  await expect(works[1]!.wait()).rejects.toThrow(
    `Waited 5.0 s for member ${ids[0]!.slice(0, 8)}: 40 of 160 bytes have come.`,
  );
});

describe("chunks that don't belong", () => {
  test("to this epoch are counted and change nothing", () => {
    const { rings, ids } = makeWorld(2, 1);
    const data = new Float32Array(8).fill(1);
    rings[0]!.allReduce(data, { step: 1, channel: 0 });
    rings[0]!.receive(ids[1]!, chunk(1, 0, 16, 16, 6));
    rings[0]!.receive(ids[1]!, chunk(1, 0, 16, 16, 8));
    expect(rings[0]!.ignored).toBe(2);
    expect([...data]).toEqual(new Array(8).fill(1));
  });

  test("to the next place fail the operation with peer, step, got and expected", async () => {
    const { clock, rings, ids } = makeWorld(2, 1);
    const work = rings[0]!.allReduce(new Float32Array(8), { step: 1, channel: 0 });
    rings[0]!.receive(ids[1]!, chunk(1, 0, 0, 12));
    await clock.advance(30);
    await expect(work.wait()).rejects.toThrow(
      `All-reduce of step 1, channel 0 failed. Member ${ids[1]!.slice(0, 8)}, step 1, channel 0: got 12 bytes at offset 0, expected 16 bytes at offset 16.`,
    );
    expect(rings[0]!.aborted).toBeNull();
  });

  test("because the sender sits elsewhere fail the operation", async () => {
    const { clock, rings, ids } = makeWorld(3, 1);
    const work = rings[0]!.allReduce(new Float32Array(8), { step: 1, channel: 0 });
    rings[0]!.receive(ids[1]!, chunk(1, 0, 0, 8));
    await clock.advance(30);
    await expect(work.wait()).rejects.toThrow(
      `got a chunk from a member at another place in the ring, expected one from the left neighbour ${ids[2]!.slice(0, 8)}`,
    );
  });

  test("to a complete operation end the ring", async () => {
    const { clock, rings, ids } = makeWorld(2, 1);
    for (const ring of rings) ring.allReduce(new Float32Array(8), { step: 1, channel: 0 });
    await clock.advance(1000);
    rings[0]!.receive(ids[1]!, chunk(1, 0, 0, 16));
    expect(rings[0]!.aborted).toContain("expected nothing more, as that operation is complete");
  });

  test("to operations not started here are kept up to the bound, then end the ring", () => {
    const { rings, ids } = makeWorld(2, 1, { earlyBytes: 1000 });
    for (let index = 0; index < 12; index += 1) rings[0]!.receive(ids[1]!, chunk(1, index, 16, 16));
    expect(rings[0]!.earlyBytes).toBe(960);
    expect(rings[0]!.aborted).toBeNull();
    rings[0]!.receive(ids[1]!, chunk(1, 12, 16, 0));
    expect(rings[0]!.aborted).toBe(
      `Member ${ids[1]!.slice(0, 8)}, step 1, channel 12: got 1024 bytes of operations that this member hasn't started, expected at most 1000.`,
    );
    expect(rings[0]!.earlyBytes).toBe(0);
  });

  test("to an early operation of another length fail it when it starts", async () => {
    const { clock, rings, ids } = makeWorld(2, 1);
    rings[0]!.receive(ids[1]!, chunk(1, 0, 400, 16));
    const work = rings[0]!.allReduce(new Float32Array(8), { step: 1, channel: 0 });
    await clock.advance(30);
    await expect(work.wait()).rejects.toThrow("got 16 bytes at offset 400, expected 16 bytes at offset 16");
  });
});

test("a step that isn't later than the last one of its channel is refused", () => {
  const { rings } = makeWorld(1, 1);
  rings[0]!.allReduce(new Float32Array(1), { step: 4, channel: 0 });
  expect(() => rings[0]!.allReduce(new Float32Array(1), { step: 4, channel: 0 })).toThrow(
    "All-reduce of step 4, channel 0: step 4 of that channel was started before.",
  );
});

test("a member outside the ring, or twice in it, is refused", () => {
  const send = () => {};
  const drained = () => Promise.resolve();
  expect(() => new Ring({ self: idOf(3), members: [idOf(1)], epoch: 1, send, drained })).toThrow(
    "isn't one of the ring",
  );
  expect(() => new Ring({ self: idOf(1), members: [idOf(1), idOf(1)], epoch: 1, send, drained })).toThrow(
    "all be different",
  );
});

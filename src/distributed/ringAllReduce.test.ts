import { describe, expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { RingAllReduce } from "./ringAllReduce";

interface Message {
  readonly offset: number;
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** Runs all members to the end; links keep their order, which link is next is drawn from the seed. */
function run(inputs: readonly Float32Array<ArrayBuffer>[], chunkBytes: number, seed: number) {
  const random = seededRandom(seed);
  const worldSize = inputs.length;
  const data = inputs.map((input) => input.slice());
  const members = data.map((values, rank) => new RingAllReduce(values, rank, worldSize, chunkBytes));
  const queues: Message[][] = members.map(() => []);
  const sent = members.map(() => 0);
  const sender = (rank: number) => (offset: number, payload: Uint8Array<ArrayBuffer>) => {
    expect(payload.buffer).toBe(data[rank]!.buffer);
    sent[rank]! += payload.length;
    queues[(rank + 1) % worldSize]!.push({ offset, payload });
  };
  const starting = members.map((_, rank) => rank);
  for (;;) {
    const busy = queues.flatMap((queue, rank) => (queue.length > 0 && !starting.includes(rank) ? [rank] : []));
    const choices = busy.length + starting.length;
    if (choices === 0) break;
    const choice = Math.floor(random() * choices);
    if (choice < busy.length) {
      const rank = busy[choice]!;
      const { offset, payload } = queues[rank]!.shift()!;
      // A copy made at the last moment: it shows whether a view's bytes changed before they were sent.
      expect(members[rank]!.receive(offset, new Uint8Array(payload), sender(rank))).toBeNull();
    } else {
      const [rank] = starting.splice(choice - busy.length, 1);
      members[rank!]!.start(sender(rank!));
    }
  }
  return { data, members, sent };
}

/** The sum as a ring makes it: each segment from its own rank on, rounded to float32 at each addition. */
function ringSum(inputs: readonly Float32Array[]): Float32Array {
  const worldSize = inputs.length;
  const length = inputs[0]!.length;
  const sum = new Float32Array(length);
  for (let segment = 0; segment < worldSize; segment += 1)
    for (
      let index = Math.floor((segment * length) / worldSize);
      index < Math.floor(((segment + 1) * length) / worldSize);
      index += 1
    ) {
      let value = inputs[segment]![index]!;
      for (let hop = 1; hop < worldSize; hop += 1)
        value = Math.fround(inputs[(segment + hop) % worldSize]![index]! + value);
      sum[index] = value;
    }
  return sum;
}

function randomInputs(worldSize: number, length: number, seed: number): Float32Array<ArrayBuffer>[] {
  const random = seededRandom(seed);
  return Array.from({ length: worldSize }, () => Float32Array.from({ length }, () => (random() - 0.5) * 1000));
}

const bits = (values: Float32Array<ArrayBuffer>) => new Uint32Array(values.buffer, values.byteOffset, values.length);

for (const worldSize of [1, 2, 3, 4, 5, 6, 7, 8])
  test(`a world of ${worldSize} sums every length from 0 to 17 exactly, in any order of delivery`, () => {
    for (let length = 0; length <= 17; length += 1)
      for (const chunkBytes of [4, 8, 64]) {
        const seed = worldSize * 1000 + length * 10 + chunkBytes;
        const inputs = randomInputs(worldSize, length, seed);
        const { data, members, sent } = run(inputs, chunkBytes, seed);
        const expected = bits(Float32Array.from(ringSum(inputs)));
        for (const [rank, values] of data.entries()) {
          expect(bits(values), `seed ${seed}, rank ${rank}`).toEqual(expected);
          expect(members[rank]!.done).toBe(true);
          expect(members[rank]!.received).toBe(members[rank]!.total);
        }
        const all = sent.reduce((sum, bytes) => sum + bytes, 0);
        expect(all, "every element makes 2 (N - 1) hops").toBe(2 * (worldSize - 1) * length * 4);
      }
  });

test("large prime lengths give the same bits on all members", () => {
  for (const [worldSize, length] of [
    [2, 104_729],
    [3, 65_537],
    [5, 99_991],
    [7, 50_021],
    [8, 17_389],
  ] as const) {
    const inputs = randomInputs(worldSize, length, length);
    const { data } = run(inputs, 1024, worldSize);
    const expected = bits(Float32Array.from(ringSum(inputs)));
    for (const values of data)
      expect(Buffer.compare(Buffer.from(bits(values).buffer), Buffer.from(expected.buffer))).toBe(0);
  }
});

test("data in the middle of a buffer is reduced in place and nothing beside it is touched", () => {
  const whole = new Float32Array(20).fill(-1);
  const part = whole.subarray(3, 10).fill(2);
  const other = new Float32Array(7).fill(5);
  const [a, b] = [new RingAllReduce(part, 0, 2, 8), new RingAllReduce(other, 1, 2, 8)];
  const toA: Message[] = [];
  const toB: Message[] = [];
  a.start((offset, payload) => toB.push({ offset, payload }));
  b.start((offset, payload) => toA.push({ offset, payload }));
  for (let message = toB.shift() ?? null, turn = 0; turn < 40; turn += 1) {
    if (message)
      b.receive(message.offset, new Uint8Array(message.payload), (offset, payload) => toA.push({ offset, payload }));
    const back = toA.shift();
    // Odd alignment, as when a header's length isn't a multiple of 4.
    if (back) {
      const odd = new Uint8Array(back.payload.length + 1);
      odd.set(back.payload, 1);
      a.receive(back.offset, odd.subarray(1), (offset, payload) => toB.push({ offset, payload }));
    }
    message = toB.shift() ?? null;
  }
  expect([...whole]).toEqual([-1, -1, -1, 7, 7, 7, 7, 7, 7, 7, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1]);
  expect([...other]).toEqual([7, 7, 7, 7, 7, 7, 7]);
});

test("infinities and NaN travel like any other value", () => {
  const { data } = run(
    [
      Float32Array.of(Number.NaN, 1, Infinity, 1),
      Float32Array.of(1, Infinity, -Infinity, 2),
      Float32Array.of(1, 2, 3, 4),
    ],
    4,
    5,
  );
  for (const values of data) {
    expect([...values]).toEqual([Number.NaN, Infinity, Number.NaN, 7]);
    expect(bits(values)).toEqual(bits(data[0]!));
  }
});

describe("a chunk that isn't the next one", () => {
  const begin = () => {
    const data = Float32Array.from({ length: 10 }, (_, index) => index);
    const member = new RingAllReduce(data, 1, 2, 8);
    member.start(() => {});
    return { data, member };
  };
  const forbidden = () => {
    throw new Error("nothing may be sent");
  };
  test.each([
    ["at another offset", 8, 8, "got 8 bytes at offset 8, expected 8 bytes at offset 0"],
    ["beyond the end", 4_000_000_000, 8, "got 8 bytes at offset 4000000000, expected 8 bytes at offset 0"],
    ["too short", 0, 4, "got 4 bytes at offset 0, expected 8 bytes at offset 0"],
    ["too long", 0, 12, "got 12 bytes at offset 0, expected 8 bytes at offset 0"],
    ["empty", 0, 0, "got 0 bytes at offset 0, expected 8 bytes at offset 0"],
  ])("%s is refused and changes nothing", (_, offset, length, sentence) => {
    const { data, member } = begin();
    expect(member.receive(offset, new Uint8Array(length).fill(1), forbidden)).toBe(sentence);
    expect([...data]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(member.expected).toEqual({ offset: 0, length: 8 });
  });

  test("after the end is refused", () => {
    const member = new RingAllReduce(new Float32Array(3), 0, 1, 8);
    member.start(forbidden);
    expect(member.receive(0, new Uint8Array(8), forbidden)).toBe("got 8 bytes at offset 0, expected nothing more");
  });
});

test("impossible ranks and chunk sizes are refused with a sentence", () => {
  const data = new Float32Array(4);
  expect(() => new RingAllReduce(data, 3, 3, 8)).toThrow("A ring all-reduce got rank 3 in a world of 3.");
  expect(() => new RingAllReduce(data, 0, 3, 6)).toThrow("chunks of 6 bytes; they must be a positive multiple of 4");
});

import { describe, expect, test } from "vitest";
import { recursiveDoubling } from "./algorithms/doubling";
import { ringAllReduce } from "./algorithms/ring";
import { Collective } from "./collective";
import { Elements, elementTypes } from "./elementType";
import { reductionOf } from "./reduction";

const float32 = elementTypes.float32;
const forbidden = () => {
  throw new Error("nothing may be sent");
};

function begin(rank: number, worldSize: number, algorithm = ringAllReduce) {
  const data = Float32Array.from({ length: 10 }, (_, index) => index);
  const values = new Elements(float32, data);
  const collective = new Collective({
    schedule: algorithm({ rank, worldSize }, data.length),
    input: values,
    output: values,
    reduction: reductionOf("sum", float32, worldSize),
    chunkBytes: 8,
  });
  collective.start(() => {});
  return { data, collective };
}

describe("a chunk that isn't the next one", () => {
  test.each([
    ["at another offset", 8, 8, "got 8 bytes at offset 8, expected 8 bytes at offset 0"],
    ["beyond the end", 4_000_000_000, 8, "got 8 bytes at offset 4000000000, expected 8 bytes at offset 0"],
    ["too short", 0, 4, "got 4 bytes at offset 0, expected 8 bytes at offset 0"],
    ["too long", 0, 12, "got 12 bytes at offset 0, expected 8 bytes at offset 0"],
    ["empty", 0, 0, "got 0 bytes at offset 0, expected 8 bytes at offset 0"],
  ])("%s is refused and changes nothing", (_, offset, length, sentence) => {
    const { data, collective } = begin(1, 2);
    expect(collective.receive(0, offset, new Uint8Array(length).fill(1), forbidden)).toEqual({ from: 0, sentence });
    expect([...data]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([collective.received, collective.waitingFor]).toEqual([0, [0]]);
  });

  test("after the end is refused", () => {
    const { collective } = begin(0, 1);
    expect(collective.done).toBe(true);
    expect(collective.receive(0, 0, new Uint8Array(8), forbidden)?.sentence).toContain("expected nothing");
  });

  test("from a rank that has nothing to send is refused", () => {
    const { collective } = begin(1, 3);
    expect([0, 1, 2].map((rank) => collective.needs(rank))).toEqual([true, false, false]);
    expect(collective.receive(2, 0, new Uint8Array(8), forbidden)).toEqual({
      from: 2,
      sentence: "got 8 bytes at offset 0, expected nothing from it",
    });
  });
});

test("chunks of later rounds are kept, but no more than the operation has", () => {
  const { collective } = begin(0, 4, recursiveDoubling);
  // Rank 1 comes in the first round, rank 2 in the second: 40 bytes in 5 chunks.
  for (let index = 0; index < 5; index += 1)
    expect(collective.receive(2, index * 8, new Uint8Array(8), forbidden)).toBeNull();
  expect(collective.receive(2, 40, new Uint8Array(0), forbidden)?.sentence).toBe(
    "got 0 bytes at offset 40, expected nothing more",
  );
  expect(collective.received).toBe(0);
});

test("what is wrong with a chunk that was kept is told when its turn comes, with its sender", () => {
  const { collective } = begin(0, 4, recursiveDoubling);
  expect(collective.receive(2, 24, new Uint8Array(8), forbidden)).toBeNull();
  const nobody = () => {};
  for (let index = 0; index < 4; index += 1)
    expect(collective.receive(1, index * 8, new Uint8Array(8), nobody)).toBeNull();
  expect(collective.receive(1, 32, new Uint8Array(8), nobody)).toEqual({
    from: 2,
    sentence: "got 8 bytes at offset 24, expected 8 bytes at offset 0",
  });
});

test("chunks at odd alignments are combined all the same", () => {
  const { data, collective } = begin(1, 2);
  const odd = new Uint8Array(9);
  new DataView(odd.buffer).setFloat32(1, 0.5, true);
  new DataView(odd.buffer).setFloat32(5, 0.25, true);
  expect(collective.receive(0, 0, odd.subarray(1), () => {})).toBeNull();
  expect([...data.slice(0, 2)]).toEqual([0.5, 1.25]);
});

test("impossible chunk sizes are refused with a sentence", () => {
  const values = Elements.allocate(float32, 4);
  const options = { schedule: ringAllReduce({ rank: 0, worldSize: 2 }, 4), input: values, output: values };
  expect(() => new Collective({ ...options, reduction: null, chunkBytes: 6 })).toThrow(
    "A collective got chunks of 6 bytes; they must be a positive multiple of 4.",
  );
});

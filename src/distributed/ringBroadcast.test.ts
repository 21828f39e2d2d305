import { expect, test } from "vitest";
import { RingBroadcast } from "./ringBroadcast";

/** Runs all members to the end, one message at a time. */
function run(length: number, worldSize: number, root: number, chunkBytes: number) {
  const data = Array.from({ length: worldSize }, (_, rank) =>
    Float32Array.from({ length }, (_, index) => (rank === root ? index + 0.5 : -1)),
  );
  const members = data.map((values, rank) => new RingBroadcast(values, rank, worldSize, root, chunkBytes));
  const messages: { to: number; offset: number; payload: Uint8Array<ArrayBuffer> }[] = [];
  const sender = (rank: number) => (offset: number, payload: Uint8Array<ArrayBuffer>) => {
    messages.push({ to: (rank + 1) % worldSize, offset, payload });
  };
  for (const [rank, member] of members.entries()) member.start(sender(rank));
  let bytes = 0;
  for (let message = messages.shift(); message !== undefined; message = messages.shift()) {
    bytes += message.payload.length;
    const { to, offset, payload } = message;
    expect(members[to]!.receive(offset, new Uint8Array(payload), sender(to))).toBeNull();
  }
  return { data, members, bytes };
}

test("every member ends with the root's values, each byte having made N - 1 hops", () => {
  for (let worldSize = 1; worldSize <= 6; worldSize += 1)
    for (let root = 0; root < worldSize; root += 1)
      for (const length of [0, 1, 2, 5, 17]) {
        const { data, members, bytes } = run(length, worldSize, root, 8);
        for (const values of data) expect([...values]).toEqual([...data[root]!]);
        expect(members.every((member) => member.done)).toBe(true);
        expect(bytes).toBe(4 * length * (worldSize - 1));
      }
});

test("a chunk that isn't the next one is refused and changes nothing", () => {
  const data = new Float32Array(4).fill(1);
  const member = new RingBroadcast(data, 1, 2, 0, 8);
  const nothing = () => {};
  expect(member.receive(8, new Uint8Array(8), nothing)).toBe("got 8 bytes at offset 8, expected 8 bytes at offset 0");
  expect(member.receive(0, new Uint8Array(4), nothing)).toBe("got 4 bytes at offset 0, expected 8 bytes at offset 0");
  expect([...data]).toEqual([1, 1, 1, 1]);
  expect(new RingBroadcast(data, 0, 2, 0, 8).receive(0, new Uint8Array(8), nothing)).toContain("expected nothing more");
  expect(() => new RingBroadcast(data, 0, 2, 2, 8)).toThrow("A broadcast got root 2 in a world of 2.");
});

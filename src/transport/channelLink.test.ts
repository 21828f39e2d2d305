import { describe, expect, test } from "vitest";
import { VirtualClock } from "../base/virtualClock";
import { ChannelLink } from "./channelLink";
import { encodeFrame, headerBytes } from "./frame";
import type { Frame, FrameHeader } from "./link";
import { memberId } from "./memberId";
import { highWaterBytes } from "./pipe";
import { MemoryPipe } from "./testing/memoryPipe";

const [a, b] = [memberId("a".repeat(32)), memberId("b".repeat(32))];
const header = (step: number): FrameHeader => ({ kind: "chunk", epoch: 1, step, channel: 2, offset: 3 });

function makePair(bytesPerMillisecond = 1e9) {
  const clock = new VirtualClock();
  const pipes = MemoryPipe.pair(clock, bytesPerMillisecond);
  for (const pipe of pipes) pipe.open();
  const make = (index: 0 | 1, peer: typeof a) =>
    new ChannelLink({ pipe: pipes[index], peer, maxMessageBytes: 262_144, clock, received: [] });
  const [linkA, linkB] = [make(0, b), make(1, a)];
  const reasons: { a: string[]; b: string[] } = { a: [], b: [] };
  linkA.onClose = (reason) => reasons.a.push(reason);
  linkB.onClose = (reason) => reasons.b.push(reason);
  const frames: Frame[] = [];
  linkB.onFrame = (frame) => frames.push(frame);
  return { clock, pipes, linkA, linkB, reasons, frames };
}

describe("sending", () => {
  test("keeps the channel below the high water and the frames' order, and drains", async () => {
    const { clock, pipes, linkA, frames } = makePair(1000);
    const payload = new Uint8Array(linkA.maxPayload);
    for (let step = 0; step < 80; step += 1) linkA.send(header(step), payload);
    let drained = false;
    linkA.drained().then(() => {
      drained = true;
    });
    await clock.advance(100);
    expect([drained, pipes[0].bufferedAmount > 0]).toEqual([false, true]);
    await clock.advance(10_000);
    expect(drained).toBe(true);
    expect(frames.map((frame) => frame.step)).toEqual(Array.from({ length: 80 }, (_, step) => step));
    expect(pipes[0].highest).toBeLessThanOrEqual(highWaterBytes);
    expect(pipes[0].highest).toBeGreaterThan(highWaterBytes - 65_536);
  });

  test("doesn't copy what it queues, and what it receives is a view of the message", async () => {
    const { clock, linkA, frames, pipes } = makePair(1000);
    const payload = new Uint8Array(60_000).fill(1);
    for (let step = 0; step < 30; step += 1) linkA.send(header(step), payload);
    payload.fill(2);
    await clock.advance(10_000);
    expect([frames[0]!.payload[0], frames[29]!.payload[0]]).toEqual([1, 2]);
    expect(frames[0]!.payload.byteOffset).toBe(headerBytes);
    expect(pipes[0].sent[0]!.length).toBe(60_000 + headerBytes);
  });

  test("counts payloads, and everything with headers", async () => {
    const { clock, linkA, linkB } = makePair();
    linkA.send(header(1), new Uint8Array(100));
    linkA.send(header(2), new Uint8Array(0));
    await clock.advance(10);
    expect(linkA.counters).toEqual({ sentPayload: 100, sentTotal: 148, receivedPayload: 0, receivedTotal: 0 });
    expect(linkB.counters).toEqual({ sentPayload: 0, sentTotal: 0, receivedPayload: 100, receivedTotal: 148 });
  });

  test("refuses a payload above the limit, which is the peer's or 64 KiB", () => {
    const { linkA, pipes, clock } = makePair();
    expect(linkA.maxPayload).toBe(65_536 - headerBytes);
    expect(() => linkA.send(header(1), new Uint8Array(65_536))).toThrow(
      "A frame to member bbbbbbbb has 65536 bytes; this link takes 65512 at most.",
    );
    const small = new ChannelLink({ pipe: pipes[0], peer: b, maxMessageBytes: 16_384, clock, received: [] });
    expect(small.maxPayload).toBe(16_384 - headerBytes);
  });
});

describe("closing", () => {
  test("sends what is queued, then tells the peer the reason, once on each side", async () => {
    const { clock, linkA, linkB, reasons, frames } = makePair(1000);
    for (let step = 0; step < 40; step += 1) linkA.send(header(step), new Uint8Array(60_000));
    const drained = linkA.drained();
    linkA.close("The person left.");
    linkA.close("Another reason.");
    linkA.send(header(99), new Uint8Array(1));
    await drained;
    await clock.advance(10_000);
    expect(frames.map((frame) => frame.step)).toEqual(Array.from({ length: 40 }, (_, step) => step));
    expect(reasons).toEqual({ a: ["The person left."], b: ["The person left."] });
    expect([linkA.open, linkB.open, clock.nextDue]).toEqual([false, false, null]);
  });

  test("a connection that ends without a word is told as such", async () => {
    const { clock, pipes, reasons } = makePair();
    pipes[0].close();
    await clock.advance(10);
    expect(reasons.a).toEqual(["The link to member bbbbbbbb is gone. This side closed it."]);
    expect(reasons.b).toEqual(["The link to member aaaaaaaa is gone. Its connection closed."]);
    expect(clock.nextDue).toBeNull();
  });

  test("a message that is no frame drops the peer, with a sentence on both sides", async () => {
    const { clock, pipes, linkB, reasons } = makePair();
    pipes[1].inject(Uint8Array.of(1, 2, 3));
    await clock.advance(10);
    const sentence = "Member aaaaaaaa was dropped. A message of 3 bytes is no frame: a header alone has 24.";
    expect(reasons).toEqual({ a: [sentence], b: [sentence] });
    expect(linkB.open).toBe(false);
  });

  test("a peer that sends without end before this side takes anything is dropped", async () => {
    const { linkB, pipes, reasons } = makePair();
    linkB.onFrame = null;
    const message = encodeFrame(header(0), new Uint8Array(65_512), new Uint8Array(65_536));
    for (let count = 0; count < 300 && linkB.open; count += 1) pipes[1].inject(message);
    expect(reasons.b).toEqual([
      "Member aaaaaaaa was dropped. It sent 257 frames with 16836584 bytes before this side was ready for any.",
    ]);
  });
});

describe("silence", () => {
  test("heartbeats keep an idle link open", async () => {
    const { clock, linkA, linkB, pipes } = makePair();
    await clock.advance(60_000);
    expect([linkA.open, linkB.open]).toEqual([true, true]);
    expect(pipes[0].sent.length).toBeGreaterThan(50);
  });

  test("of twelve seconds closes the link, with the peer's name", async () => {
    const { clock, pipes, reasons } = makePair();
    await clock.advance(3000);
    for (const pipe of pipes) pipe.stuck = true;
    await clock.advance(10_500);
    expect(reasons).toEqual({ a: [], b: [] });
    await clock.advance(2000);
    expect(reasons).toEqual({
      a: ["Nothing came from member bbbbbbbb for 12 s."],
      b: ["Nothing came from member aaaaaaaa for 12 s."],
    });
    expect(clock.nextDue).toBeNull();
  });

  test("that this side slept through isn't held against the peer", async () => {
    const { clock, linkA } = makePair();
    let asleep = 0;
    const sleeper = {
      ...clock,
      now: () => clock.now() + asleep,
      setTimeout: clock.setTimeout.bind(clock),
      clearTimeout: clock.clearTimeout.bind(clock),
    };
    const [pipe] = MemoryPipe.pair(clock, 1e9);
    pipe.open();
    const link = new ChannelLink({ pipe, peer: b, maxMessageBytes: 65_536, clock: sleeper, received: [] });
    await clock.advance(2000);
    asleep = 3_600_000;
    await clock.advance(2000);
    expect([link.open, linkA.open]).toEqual([true, true]);
  });
});

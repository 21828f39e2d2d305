import { expect, test } from "vitest";
import { VirtualClock } from "../base/virtualClock";
import { headerBytes } from "./frame";
import type { Frame, FrameHeader } from "./link";
import { memberId } from "./memberId";
import { SimulatedHub, type SimulatedOptions } from "./simulated";

const ids = ["a", "b", "c"].map((digit) => memberId(digit.repeat(32)));
const [a, b, c] = [ids[0]!, ids[1]!, ids[2]!];
const header = (step: number): FrameHeader => ({ kind: "chunk", epoch: 0, step, channel: 0, offset: 0 });

function begin(options: Partial<SimulatedOptions> = {}) {
  const clock = new VirtualClock();
  const hub = new SimulatedHub({ clock, ...options });
  for (const id of ids) hub.join(id);
  const log: string[] = [];
  const link = (from: typeof a, to: typeof a) => {
    const own = hub.connect(from, to);
    const other = hub.connect(to, from);
    other.onFrame = ({ step, payload }: Frame) =>
      log.push(`${step} (${payload.length} B) at ${clock.now().toFixed(1)}`);
    other.onClose = (reason) => log.push(`${reason} at ${clock.now().toFixed(1)}`);
    return own;
  };
  return { clock, hub, log, link };
}

test("a frame takes its bytes' time on the line and then the latency, and those behind it wait", async () => {
  const { clock, log, link } = begin({ bytesPerSecond: 1000, latency: [50, 50] });
  const own = link(a, b);
  own.send(header(1), new Uint8Array(76));
  own.send(header(2), new Uint8Array(176));
  let drainedAt = -1;
  own.drained().then(() => {
    drainedAt = clock.now();
  });
  await clock.advance(1000);
  expect(log).toEqual(["1 (76 B) at 150.0", "2 (176 B) at 350.0"]);
  expect(drainedAt).toBe(300);
});

test("a member's line is shared by its links, both ways", async () => {
  const { clock, log, link } = begin({ bytesPerSecond: 1000, latency: [0, 0] });
  link(a, b).send(header(1), new Uint8Array(76));
  link(a, c).send(header(2), new Uint8Array(76));
  link(b, c).send(header(3), new Uint8Array(76));
  await clock.advance(1000);
  // Member c receives from a and from b.
  expect(log).toEqual(["1 (76 B) at 100.0", "2 (76 B) at 200.0", "3 (76 B) at 300.0"]);
});

test("links keep their frames' order, and frames of different links overtake each other", async () => {
  const overtaken = new Set<boolean>();
  for (let seed = 0; seed < 20; seed += 1) {
    const { clock, log, link } = begin({ seed, latency: [1, 100] });
    const [toB, toC] = [link(a, b), link(a, c)];
    for (let step = 0; step < 10; step += 1) (step % 2 === 0 ? toB : toC).send(header(step), new Uint8Array(1));
    await clock.advance(1000);
    const steps = log.map((line) => Number.parseInt(line, 10));
    for (const parity of [0, 1])
      expect(steps.filter((step) => step % 2 === parity)).toEqual([0, 2, 4, 6, 8].map((step) => step + parity));
    overtaken.add(steps.some((step, index) => step !== index));
  }
  expect(overtaken).toEqual(new Set([true]));
});

test("a link that breaks after so many bytes delivers what was whole by then, and tells both sides", async () => {
  const size = headerBytes + 10;
  for (let bytes = 0; bytes <= 3 * size; bytes += 1) {
    const { clock, hub, log, link } = begin({ bytesPerSecond: 1e6, latency: [0, 0] });
    const own = link(a, b);
    let reason = "";
    own.onClose = (sentence) => {
      reason = sentence;
    };
    hub.cutAfter(a, b, bytes);
    for (let step = 0; step < 3; step += 1) own.send(header(step), new Uint8Array(10));
    await clock.advance(100);
    expect(log.filter((line) => line.includes("(10 B)"))).toHaveLength(Math.floor(bytes / size));
    expect(own.open).toBe(bytes === 3 * size);
    expect(reason).toBe(own.open ? "" : "The link to member bbbbbbbb broke.");
  }
});

test("a payload is read when it is sent, not before, and may change after that", async () => {
  const { clock, hub } = begin({ bytesPerSecond: 1000, latency: [100, 100] });
  const received: number[] = [];
  hub.connect(b, a).onFrame = ({ payload }) => received.push(payload[0]!);
  const bytes = new Uint8Array(76).fill(1);
  const own = hub.connect(a, b);
  own.send(header(1), bytes);
  await clock.advance(50);
  bytes.fill(2);
  await clock.advance(60);
  bytes.fill(3);
  await clock.advance(500);
  expect(received).toEqual([2]);
});

test("a member that closes delivers what it sent before, and one that is killed doesn't", async () => {
  for (const isKilled of [false, true]) {
    const { clock, hub, log, link } = begin({ bytesPerSecond: 1000, latency: [5, 5] });
    const own = link(a, b);
    own.send(header(1), new Uint8Array(76));
    if (isKilled) hub.kill(a);
    else own.close("Done.");
    await clock.advance(1000);
    expect(log).toEqual(
      isKilled ? ["The link to member aaaaaaaa broke. at 0.0"] : ["1 (76 B) at 105.0", "Done. at 105.0"],
    );
  }
});

test("stalls hold a sender up for a time that follows from the seed", async () => {
  const times = async (seed: number) => {
    const { clock, log, link } = begin({ seed, stalls: { chance: 0.5, milliseconds: 200 }, latency: [0, 0] });
    const own = link(a, b);
    for (let step = 0; step < 5; step += 1) own.send(header(step), new Uint8Array(0));
    await clock.advance(2000);
    return log;
  };
  expect(await times(3)).toEqual(await times(3));
  expect(await times(3)).not.toEqual(await times(4));
});

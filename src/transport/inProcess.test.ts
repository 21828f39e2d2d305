import { expect, test } from "vitest";
import { VirtualClock } from "../base/virtualClock";
import { InProcessHub } from "./inProcess";
import type { Frame, FrameHeader, Link } from "./link";
import { memberId } from "./memberId";

const [a, b, c] = [memberId("a".repeat(32)), memberId("b".repeat(32)), memberId("c".repeat(32))];
const header = (step: number): FrameHeader => ({ kind: "chunk", epoch: 1, step, channel: 0, offset: 0 });

function collect(link: Link): { readonly frames: Frame[]; readonly reasons: string[] } {
  const frames: Frame[] = [];
  const reasons: string[] = [];
  link.onFrame = (frame) => frames.push(frame);
  link.onClose = (reason) => reasons.push(reason);
  return { frames, reasons };
}

test("frames arrive in order whatever their delays, also those sent before onFrame is set", async () => {
  const clock = new VirtualClock();
  const hub = new InProcessHub({ clock, seed: 3, latency: [1, 50] });
  const [networkA, networkB] = [hub.join(a), hub.join(b)];
  const link = hub.connect(a, b);
  for (let step = 0; step < 50; step += 1) link.send(header(step), Uint8Array.of(step));
  await clock.advance(60);
  const { frames } = collect(networkB.links.get(a)!);
  for (let step = 50; step < 100; step += 1) link.send(header(step), Uint8Array.of(step));
  const drained = link.drained();
  await clock.advance(60);
  await drained;
  expect(frames.map((frame) => [frame.step, frame.payload[0]])).toEqual(
    Array.from({ length: 100 }, (_, step) => [step, step]),
  );
  expect(networkA.links.get(b)!.counters).toEqual({
    sentPayload: 100,
    sentTotal: 100 + 24 * 100,
    receivedPayload: 0,
    receivedTotal: 0,
  });
});

test("an orderly close delivers what was sent before it, then tells the peer why", async () => {
  const hub = new InProcessHub();
  const [, networkB] = [hub.join(a), hub.join(b)];
  const link = hub.connect(a, b);
  const { frames, reasons } = collect(networkB.links.get(a)!);
  link.send(header(1), Uint8Array.of(1));
  link.close("Goodbye.");
  link.send(header(2), Uint8Array.of(2));
  await Promise.resolve();
  await Promise.resolve();
  expect(frames.map((frame) => frame.step)).toEqual([1]);
  expect(reasons).toEqual(["Goodbye."]);
  expect(networkB.links.size).toBe(0);
  const late: string[] = [];
  link.onClose = (reason) => late.push(reason);
  expect(late).toEqual(["Goodbye."]);
});

test("a cut loses what is on the way, on both sides", async () => {
  const clock = new VirtualClock();
  const hub = new InProcessHub({ clock });
  const [networkA, networkB] = [hub.join(a), hub.join(b)];
  const link = hub.connect(a, b);
  const [atA, atB] = [collect(link), collect(networkB.links.get(a)!)];
  link.send(header(1), Uint8Array.of(1));
  hub.cut(a, b);
  await clock.advance(10);
  expect(atB.frames).toEqual([]);
  expect(atA.reasons).toEqual(["The link to member bbbbbbbb broke."]);
  expect(atB.reasons).toEqual(["The link to member aaaaaaaa broke."]);
  expect([networkA.links.size, networkB.links.size]).toEqual([0, 0]);
  await link.drained();
});

test("a killed member hears nothing, and its peers lose their links", async () => {
  const hub = new InProcessHub();
  const networks = [hub.join(a), hub.join(b), hub.join(c)];
  hub.connect(a, b);
  hub.connect(b, c);
  const [atA, atB] = [collect(networks[0]!.links.get(b)!), collect(networks[1]!.links.get(a)!)];
  hub.kill(b);
  expect(atA.reasons).toEqual(["Member bbbbbbbb is gone."]);
  expect(atB.reasons).toEqual([]);
  expect(networks.map((network) => network.links.size)).toEqual([0, 0, 0]);
});

test("dialling needs a relay that is linked to both, and simultaneous dials leave one link", async () => {
  const hub = new InProcessHub();
  const [networkA, networkB, networkC] = [hub.join(a), hub.join(b), hub.join(c)];
  const seen: string[] = [];
  networkC.onLink = (link) => seen.push(link.peer);
  hub.connect(a, b);
  await expect(networkA.dial(c, b)).rejects.toThrow(
    "Member cccccccc can't be reached through member bbbbbbbb: the latter has no link to the former.",
  );
  hub.connect(b, c);
  const [linkA, linkC] = await Promise.all([networkA.dial(c, b), networkC.dial(a, b)]);
  expect([linkA.peer, linkC.peer]).toEqual([c, a]);
  expect([networkA.links.size, networkC.links.size, networkB.links.size]).toEqual([2, 2, 2]);
  await Promise.resolve();
  expect(seen).toEqual([b, a]);
});

test("a frame above the link's limit is refused with its size", () => {
  const hub = new InProcessHub({ maxPayload: 10 });
  hub.join(a);
  hub.join(b);
  expect(() => hub.connect(a, b).send(header(0), new Uint8Array(11))).toThrow(
    "A frame to member bbbbbbbb has 11 bytes; this link takes 10 at most.",
  );
});

import { afterEach, describe, expect, test } from "vitest";
import { BrowserConnector } from "./browserConnector";
import { exposeConnector } from "./connectorPort";
import { createIdentity } from "./identity";
import type { Frame, FrameHeader, Link } from "./link";
import { highWaterBytes } from "./pipe";
import { encodeSignal } from "./signal";
import EchoWorker from "./testing/echoWorker?worker";
import { PageRendezvous } from "./testing/pageRendezvous";
import { WebRtcNetwork, type WebRtcNetworkOptions } from "./webRtcNetwork";

const secret = new Uint8Array(16).fill(3);
const manifestHash = new Uint8Array(32).fill(4);
const nowhere = { host: "localhost", port: 1, path: "/", secure: false };
const header = (step: number): FrameHeader => ({ kind: "chunk", epoch: 1, step, channel: 0, offset: 0 });

const networks: WebRtcNetwork[] = [];
afterEach(() => {
  for (const network of networks.splice(0)) network.close("The test is over.");
});

async function join(place: PageRendezvous, options: Partial<WebRtcNetworkOptions> = {}): Promise<WebRtcNetwork> {
  const connector = new BrowserConnector({ signaling: nowhere, iceServers: [], forWorker: false });
  const network = await WebRtcNetwork.create({
    connector: place.join(connector),
    identity: await createIdentity(),
    secret,
    job: "job",
    ...options,
  });
  networks.push(network);
  return network;
}

/** A member with a link to each of two others, which have none to each other. */
async function makeStar() {
  const place = new PageRendezvous();
  const hub = await join(place, { manifestHash });
  await hub.claim();
  const [left, right] = [await join(place), await join(place)];
  await left.contact();
  await right.contact();
  return { place, hub, left, right };
}

function nextFrame(link: Link): Promise<Frame> {
  return new Promise((resolve) => {
    link.onFrame = (frame) => {
      link.onFrame = null;
      resolve(frame);
    };
  });
}

const closed = (link: Link) => new Promise<string>((resolve) => (link.onClose = resolve));

/** Runs `test` while every data channel's buffer is watched. @returns the most that one held. */
async function watchBuffers(test: () => Promise<void>): Promise<number> {
  const prototype: { send(data: unknown): void } = RTCDataChannel.prototype;
  const send = prototype.send;
  let highest = 0;
  prototype.send = function (this: RTCDataChannel, data) {
    send.call(this, data);
    highest = Math.max(highest, this.bufferedAmount);
  };
  try {
    await test();
  } finally {
    prototype.send = send;
  }
  return highest;
}

/** Runs `test` while `onTransfer` sees what is transferred over ports; it may throw as a browser would. */
async function watchTransfers(onTransfer: (item: unknown) => void, test: () => Promise<void>): Promise<void> {
  const prototype: { postMessage(message: unknown, transfer?: unknown): void } = MessagePort.prototype;
  const post = prototype.postMessage;
  prototype.postMessage = function (this: MessagePort, message, transfer) {
    if (Array.isArray(transfer)) for (const item of transfer) onTransfer(item);
    post.call(this, message, transfer);
  };
  try {
    await test();
  } finally {
    prototype.postMessage = post;
  }
}

async function linkOf(network: WebRtcNetwork, peer: WebRtcNetwork): Promise<Link> {
  const link = network.links.get(peer.self);
  if (link !== undefined) return link;
  return new Promise((resolve) => {
    network.onLink = (made) => {
      if (made.peer === peer.self) resolve(made);
    };
  });
}

describe("first contact", () => {
  test("gives both sides a proven link, and the joiner the manifest's hash", async () => {
    const { hub, left, right } = await makeStar();
    expect([...left.links.keys()]).toEqual([hub.self]);
    expect(left.manifestHash).toEqual(manifestHash);
    const [there, back] = [await linkOf(hub, left), await linkOf(left, hub)];
    const arrival = nextFrame(there);
    back.send(header(5), Uint8Array.of(1, 2, 3));
    expect(await arrival).toEqual({ ...header(5), payload: Uint8Array.of(1, 2, 3) });
    expect(back.counters.sentPayload).toBe(3);
    expect(back.maxPayload).toBe(65_512);
    expect([...hub.links.keys()].sort()).toEqual([left.self, right.self].sort());
  });

  test("with a wrong secret is refused with a sentence on both sides", async () => {
    const place = new PageRendezvous();
    const hub = await join(place, { manifestHash });
    await hub.claim();
    const refused = new Promise<string>((resolve) => (hub.onRefused = resolve));
    const stranger = await join(place, { secret: new Uint8Array(16) });
    await expect(stranger.contact()).rejects.toMatchObject({
      code: "secret",
      message: `Member ${hub.self.slice(0, 8)} and this side don't have the same secret: one of the two links is wrong or incomplete, or an old proof was repeated.`,
    });
    expect(await refused).toContain(`Member ${stranger.self.slice(0, 8)} and this side don't have the same secret`);
    expect([hub.links.size, stranger.links.size]).toEqual([0, 0]);
  });

  test("with a job that nobody runs says so", async () => {
    const network = await join(new PageRendezvous());
    await expect(network.contact()).rejects.toMatchObject({
      code: "absent",
      message: "Nobody runs this job any more.",
    });
  });

  test("finds a member that takes its name only after it was asked for", async () => {
    const place = new PageRendezvous();
    const hub = await join(place, { manifestHash });
    const joiner = await join(place);
    const contact = joiner.contact();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await hub.claim();
    expect((await contact).peer).toBe(hub.self);
  });

  test("links to one of the members that can be found, and to no other", async () => {
    const { place, hub, left, right } = await makeStar();
    await left.claim();
    await right.claim();
    const joiner = await join(place);
    const link = await joiner.contact();
    expect([hub.self, left.self, right.self]).toContain(link.peer);
    // Longer than any proof takes that might still be under way.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const linked = [hub, left, right].filter((network) => network.links.has(joiner.self));
    expect([joiner.links.size, linked.length]).toEqual([1, 1]);
  });

  test("where no signaling server is says so", async () => {
    const network = await WebRtcNetwork.create({
      connector: new BrowserConnector({ signaling: nowhere, iceServers: [], forWorker: false }),
      identity: await createIdentity(),
      secret,
      job: "job",
    });
    networks.push(network);
    await expect(network.contact()).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringContaining("The signaling server at localhost:1 can't be reached"),
    });
  });
});

describe("a dial through a member", () => {
  test("links two others, who go on when that member is gone", async () => {
    const { hub, left, right } = await makeStar();
    const [link, back] = await Promise.all([left.dial(right.self, hub.self), linkOf(right, left)]);
    expect([link.peer, back.peer]).toEqual([right.self, left.self]);
    const gone = closed(left.links.get(hub.self)!);
    hub.close("The maker closed its tab.");
    expect(await gone).toBe("The maker closed its tab.");
    const arrival = nextFrame(back);
    link.send(header(1), Uint8Array.of(9));
    expect((await arrival).payload).toEqual(Uint8Array.of(9));
    expect([left.links.size, right.links.size]).toEqual([1, 1]);
  });

  test("from both sides at once leaves one link, and both dials get it", async () => {
    const { hub, left, right } = await makeStar();
    const [there, back] = await Promise.all([left.dial(right.self, hub.self), right.dial(left.self, hub.self)]);
    expect([left.links.get(right.self), right.links.get(left.self)]).toEqual([there, back]);
    expect([there.open, back.open]).toEqual([true, true]);
    const arrival = nextFrame(back);
    there.send(header(1), Uint8Array.of(9));
    expect((await arrival).payload).toEqual(Uint8Array.of(9));
    expect([left.links.size, right.links.size, hub.links.size]).toEqual([2, 2, 2]);
  });

  test("to someone whom that member doesn't know says so", async () => {
    const { hub, left } = await makeStar();
    const other = await join(new PageRendezvous());
    await expect(left.dial(other.self, hub.self)).rejects.toThrow(
      `Member ${other.self.slice(0, 8)} can't be reached through member ${hub.self.slice(0, 8)}: the latter has no link to the former.`,
    );
  });

  test("after one side lost the link makes a new one", async () => {
    const { hub, left, right } = await makeStar();
    const first = await left.dial(right.self, hub.self);
    const atRight = await linkOf(right, left);
    const lost = closed(atRight);
    first.close("A test.");
    expect(await lost).toBe("A test.");
    const second = await right.dial(left.self, hub.self);
    expect(second.open).toBe(true);
    const arrival = nextFrame(await linkOf(left, right));
    second.send(header(2), Uint8Array.of(1));
    expect((await arrival).step).toBe(2);
  });
});

describe("a member that relays", () => {
  const signal = { kind: "signal", epoch: 0, step: 0, channel: 0, offset: 0 } as const;

  test("drops one that signals in another's name", async () => {
    const { hub, left, right } = await makeStar();
    const reason = closed(await linkOf(hub, left));
    const forged = encodeSignal({ to: right.self, from: right.self, kind: "offer", attempt: 1, text: "" });
    left.links.get(hub.self)!.send(signal, forged);
    expect(await reason).toBe(
      `Member ${left.self.slice(0, 8)} was dropped. It signalled in the name of member ${right.self.slice(0, 8)}.`,
    );
    expect(hub.links.has(right.self)).toBe(true);
  });

  test("drops one whose signal is malformed", async () => {
    const { hub, left } = await makeStar();
    const reason = closed(await linkOf(hub, left));
    left.links.get(hub.self)!.send(signal, new Uint8Array(10));
    expect(await reason).toContain("was dropped. A signal has 10 bytes; its head alone has 37.");
  });

  test("stays linked to one whose offer is nonsense, and passes on what comes after it", async () => {
    const { hub, left, right } = await makeStar();
    left.links
      .get(hub.self)!
      .send(signal, encodeSignal({ to: right.self, from: left.self, kind: "offer", attempt: 99, text: "nonsense" }));
    const link = await left.dial(right.self, hub.self);
    // The one that dialled has its link a message before the other side.
    await expect.poll(() => [hub.links.size, right.links.size]).toEqual([2, 2]);
    expect(link.peer).toBe(right.self);
  });
});

test("sixteen megabytes queued at once arrive in order, while the channel never holds more than the high water", async () => {
  const { hub, left } = await makeStar();
  const receiver = await linkOf(hub, left);
  const sender = await linkOf(left, hub);
  const count = 256;
  const steps: number[] = [];
  let sum = 0;
  const highest = await watchBuffers(async () => {
    const all = new Promise<void>((resolve) => {
      receiver.onFrame = (frame) => {
        steps.push(frame.step);
        sum += frame.payload[frame.step]! + frame.payload.length;
        if (steps.length === count) resolve();
      };
    });
    const payload = new Uint8Array(65_512).fill(7);
    for (let step = 0; step < count; step += 1) sender.send(header(step), payload);
    await sender.drained();
    await all;
  });
  expect(steps).toEqual(Array.from({ length: count }, (_, step) => step));
  expect(sum).toBe(count * (7 + 65_512));
  expect(highest).toBeGreaterThan(highWaterBytes / 2);
  expect(highest).toBeLessThanOrEqual(highWaterBytes);
  expect(receiver.counters).toMatchObject({ receivedPayload: count * 65_512, receivedTotal: count * 65_536 });
});

describe("a link in a worker", () => {
  /** The page's side of the job "echo", and a worker that sends everything back. */
  async function startEcho() {
    const place = new PageRendezvous();
    const maker = await join(place, { manifestHash, job: "echo" });
    await maker.claim();
    const linked = new Promise<Link>((resolve) => (maker.onLink = resolve));
    const { port1, port2 } = new MessageChannel();
    const connector = new BrowserConnector({ signaling: nowhere, iceServers: [], forWorker: true });
    exposeConnector(place.join(connector), port1);
    const worker = new EchoWorker();
    worker.postMessage({ port: port2, secret }, [port2]);
    return { worker, link: await linked, connector };
  }

  async function echo(link: Link, count: number): Promise<void> {
    const payload = Uint8Array.from({ length: 60_000 }, (_, index) => index * 7);
    let came = 0;
    const all = new Promise<void>((resolve) => {
      link.onFrame = (frame) => {
        expect(frame.step).toBe(came);
        came += 1;
        if (came === 1) expect(frame.payload).toEqual(payload);
        if (came === count) resolve();
      };
    });
    for (let step = 0; step < count; step += 1) link.send(header(step), payload);
    await all;
  }

  test("gets its channel from the page where the browser can transfer it", async () => {
    const kinds: string[] = [];
    await watchTransfers(
      (item) => {
        if (item instanceof RTCDataChannel) kinds.push(item.label);
      },
      async () => {
        const { worker, link } = await startEcho();
        await echo(link, 100);
        worker.terminate();
      },
    );
    expect(kinds).toEqual(["probe", "ringlet"]);
  });

  test("gets its messages through a port where it can't, and keeps the back-pressure", async () => {
    const highest = await watchBuffers(() =>
      watchTransfers(
        (item) => {
          if (item instanceof RTCDataChannel) throw new DOMException("This can't be transferred.", "DataCloneError");
        },
        async () => {
          const { worker, link } = await startEcho();
          await echo(link, 200);
          worker.terminate();
        },
      ),
    );
    expect(highest).toBeGreaterThan(highWaterBytes / 2);
    expect(highest).toBeLessThanOrEqual(highWaterBytes);
  });
});

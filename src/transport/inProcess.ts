import type { Clock } from "../base/clock";
import { seededRandom } from "../base/seededRandom";
import { BaseLink } from "./baseLink";
import type { Frame, FrameHeader, Link, MemberId, Network } from "./link";
import { shortId } from "./memberId";

export interface InProcessOptions {
  /** With a clock every message takes its time on the way; without, it is delivered in a microtask. */
  readonly clock?: Clock;
  /** The delays follow from it. */
  readonly seed?: number;
  /** Shortest and longest way of a message, in milliseconds. A link keeps its messages' order all the same. */
  readonly latency?: readonly [number, number];
  /** Bytes that a frame costs besides its payload in the counters, as on a real link. */
  readonly headerBytes?: number;
  readonly maxPayload?: number;
}

/** Links between members in one program: tests and simulations run on it what runs over WebRTC in browsers. */
export class InProcessHub {
  readonly #options: InProcessOptions;
  readonly #random: () => number;
  readonly #networks = new Map<MemberId, InProcessNetwork>();

  constructor(options: InProcessOptions = {}) {
    this.#options = options;
    this.#random = seededRandom(options.seed ?? 0);
  }

  /** The network of a new member, without links. */
  join(self: MemberId): InProcessNetwork {
    if (this.#networks.has(self)) throw new Error(`Member ${shortId(self)} is in this hub already.`);
    const network = new InProcessNetwork(
      self,
      (peer, via) => this.#dial(self, peer, via),
      () => this.#networks.delete(self),
    );
    this.#networks.set(self, network);
    return network;
  }

  /** Links two members, as a first contact would, or gives the link that there is. @returns the link as `a` sees it. */
  connect(a: MemberId, b: MemberId): Link {
    const [networkA, networkB] = [this.#network(a), this.#network(b)];
    const existing = networkA.links.get(b);
    if (existing !== undefined) return existing;
    const [linkA, linkB] = [
      new InProcessLink(b, this.#way(), this.#options),
      new InProcessLink(a, this.#way(), this.#options),
    ];
    linkA.attach(linkB, () => networkA.remove(b, linkA));
    linkB.attach(linkA, () => networkB.remove(a, linkB));
    networkA.add(linkA);
    networkB.add(linkB);
    return linkA;
  }

  /** Breaks a link; what is on the way is lost. */
  cut(a: MemberId, b: MemberId): void {
    const [linkA, linkB] = [this.#networks.get(a)?.find(b), this.#networks.get(b)?.find(a)];
    linkA?.lose(`The link to member ${shortId(b)} broke.`);
    linkB?.lose(`The link to member ${shortId(a)} broke.`);
  }

  /** Ends a member as when its tab crashes: all its links break, and it hears of nothing any more. */
  kill(member: MemberId): void {
    const network = this.#networks.get(member);
    if (network === undefined) return;
    this.#networks.delete(member);
    const peers = [...network.links.keys()];
    network.silence();
    for (const peer of peers)
      this.#networks
        .get(peer)
        ?.find(member)
        ?.lose(`Member ${shortId(member)} is gone.`);
  }

  async #dial(self: MemberId, peer: MemberId, via: MemberId): Promise<Link> {
    const refusal = `Member ${shortId(peer)} can't be reached through member ${shortId(via)}`;
    const relay = this.#networks.get(via);
    if (relay === undefined || !relay.links.has(self)) throw new Error(`${refusal}: there is no link to the latter.`);
    if (!this.#networks.has(peer) || !relay.links.has(peer))
      throw new Error(`${refusal}: the latter has no link to the former.`);
    // Offer and answer each go through the relay.
    for (let hop = 0; hop < 4; hop += 1) await this.#way().pass();
    if (!this.#networks.has(peer) || !this.#networks.has(self)) throw new Error(`${refusal}: it left meanwhile.`);
    return this.connect(self, peer);
  }

  #network(member: MemberId): InProcessNetwork {
    const network = this.#networks.get(member);
    if (network === undefined) throw new Error(`Member ${shortId(member)} isn't in this hub.`);
    return network;
  }

  #way(): Way {
    return new Way(this.#options, this.#random);
  }
}

/** One direction of a link: runs callbacks later, in order. */
class Way {
  readonly #options: InProcessOptions;
  readonly #random: () => number;
  #lastArrival = 0;

  constructor(options: InProcessOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
  }

  later(callback: () => void): void {
    const { clock, latency } = this.#options;
    if (clock === undefined) {
      queueMicrotask(callback);
      return;
    }
    const [shortest, longest] = latency ?? [1, 1];
    const arrival = clock.now() + shortest + (longest - shortest) * this.#random();
    this.#lastArrival = Math.max(arrival, this.#lastArrival);
    clock.setTimeout(callback, this.#lastArrival - clock.now());
  }

  pass(): Promise<void> {
    return new Promise((resolve) => this.later(resolve));
  }
}

class InProcessNetwork implements Network {
  onRefused: ((sentence: string) => void) | null = null;
  readonly self: MemberId;
  readonly #dial: (peer: MemberId, via: MemberId) => Promise<Link>;
  readonly #closed: () => void;
  readonly #links = new Map<MemberId, InProcessLink>();
  #onLink: ((link: Link) => void) | null = null;

  constructor(self: MemberId, dial: (peer: MemberId, via: MemberId) => Promise<Link>, closed: () => void) {
    this.self = self;
    this.#dial = dial;
    this.#closed = closed;
  }

  get links(): ReadonlyMap<MemberId, Link> {
    return this.#links;
  }

  get onLink(): ((link: Link) => void) | null {
    return this.#onLink;
  }
  set onLink(handler: ((link: Link) => void) | null) {
    this.#onLink = handler;
  }

  dial(peer: MemberId, via: MemberId): Promise<Link> {
    return this.#dial(peer, via);
  }

  close(reason: string): void {
    for (const link of [...this.#links.values()]) link.close(reason);
    this.#closed();
  }

  find(peer: MemberId): InProcessLink | undefined {
    return this.#links.get(peer);
  }

  add(link: InProcessLink): void {
    this.#links.set(link.peer, link);
    queueMicrotask(() => {
      if (link.open) this.#onLink?.(link);
    });
  }

  remove(peer: MemberId, link: InProcessLink): void {
    if (this.#links.get(peer) === link) this.#links.delete(peer);
  }

  /** Nothing reaches the member's program any more, and nothing leaves it. */
  silence(): void {
    this.#onLink = null;
    for (const link of [...this.#links.values()]) link.silence();
    this.#links.clear();
  }
}

class InProcessLink extends BaseLink implements Link {
  readonly peer: MemberId;
  readonly maxPayload: number;
  readonly #way: Way;
  readonly #headerBytes: number;
  #other: InProcessLink | null = null;
  #removed: () => void = () => {};
  #queued = 0;
  #silent = false;
  #waiting: (() => void)[] = [];

  constructor(peer: MemberId, way: Way, options: InProcessOptions) {
    super();
    this.peer = peer;
    this.#way = way;
    this.#headerBytes = options.headerBytes ?? 24;
    this.maxPayload = options.maxPayload ?? 64 * 1024 - 24;
  }

  attach(other: InProcessLink, removed: () => void): void {
    this.#other = other;
    this.#removed = removed;
  }

  send(header: FrameHeader, payload: Uint8Array<ArrayBufferLike>): void {
    this.checkSize(payload);
    const other = this.#other;
    if (!this.open || other === null) return;
    const { kind, epoch, step, channel, offset } = header;
    this.count.sentPayload += payload.length;
    this.count.sentTotal += payload.length + this.#headerBytes;
    this.#queued += 1;
    this.#way.later(() => {
      // The bytes are taken as late as they may be, so that a sender that changes them too early is found out.
      if (!this.#silent) other.#arrive({ kind, epoch, step, channel, offset, payload: new Uint8Array(payload) });
      this.#queued -= 1;
      if (this.#queued === 0) this.#release();
    });
  }

  drained(): Promise<void> {
    if (this.#queued === 0 || !this.open) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(reason: string): void {
    if (!this.open) return;
    const other = this.#other;
    this.#end(reason);
    this.#way.later(() => other?.lose(reason));
  }

  /** Closes this side alone, at once. */
  lose(reason: string): void {
    if (!this.open) return;
    this.#silent = true;
    this.#end(reason);
  }

  silence(): void {
    this.forgetUsers();
    this.lose("This member is gone.");
  }

  #arrive(frame: Frame): void {
    if (!this.open) return;
    this.count.receivedPayload += frame.payload.length;
    this.count.receivedTotal += frame.payload.length + this.#headerBytes;
    this.deliver(frame);
  }

  #end(reason: string): void {
    this.markClosed(reason);
    this.#removed();
    this.#release();
    this.tellClose();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

import type { Clock } from "../base/clock";
import { seededRandom } from "../base/seededRandom";
import { BaseLink } from "./baseLink";
import { headerBytes } from "./frame";
import type { Frame, FrameHeader, Link, MemberId, Network } from "./link";
import { shortId } from "./memberId";

export interface SimulatedOptions {
  readonly clock: Clock;
  /** Delays and stalls follow from it. */
  readonly seed?: number;
  /** What each member can send, and receive, over all its links together. */
  readonly bytesPerSecond?: number;
  /** Shortest and longest way of a frame once it is sent, in milliseconds. A link keeps its frames' order all the same. */
  readonly latency?: readonly [number, number];
  /** How likely a frame makes its sender pause before it, and for how long at most. */
  readonly stalls?: { readonly chance: number; readonly milliseconds: number };
  readonly maxPayload?: number;
  /**
   * False hands payloads over without copying them, and all that come at one moment in one turn of the clock: for measuring times with many members
   * whose data is one and the same memory.
   */
  readonly copies?: boolean;
}

/**
 * A network in virtual time: members with so much bandwidth up and down, links with delays, stalls and breaks. Everything follows from the seed and
 * from what the members do, so a run repeats exactly.
 *
 * A frame waits for its sender's line, takes its bytes' time on it, travels for the latency, and takes its time on the receiver's line. Its bytes
 * are read when the last of them is sent.
 */
export class SimulatedHub {
  readonly options: Required<SimulatedOptions>;
  readonly random: () => number;
  readonly #networks = new Map<MemberId, SimulatedNetwork>();
  readonly #due = new Map<number, (() => void)[]>();

  constructor(options: SimulatedOptions) {
    this.options = {
      seed: 0,
      bytesPerSecond: Number.POSITIVE_INFINITY,
      latency: [1, 1],
      stalls: { chance: 0, milliseconds: 0 },
      maxPayload: 64 * 1024 - headerBytes,
      copies: true,
      ...options,
    };
    this.random = seededRandom(this.options.seed);
  }

  /** The network of a new member, without links. */
  join(self: MemberId): Network {
    if (this.#networks.has(self)) throw new Error(`Member ${shortId(self)} is in this hub already.`);
    const network = new SimulatedNetwork(self, this);
    this.#networks.set(self, network);
    return network;
  }

  /** Links two members, or gives the link that there is. @returns the link as `a` sees it. */
  connect(a: MemberId, b: MemberId): Link {
    const [networkA, networkB] = [this.#network(a), this.#network(b)];
    const existing = networkA.find(b);
    if (existing !== undefined) return existing;
    const linkA = new SimulatedLink(networkA, b, this);
    const linkB = new SimulatedLink(networkB, a, this);
    linkA.attach(linkB);
    linkB.attach(linkA);
    networkA.add(linkA);
    networkB.add(linkB);
    return linkA;
  }

  /** Breaks the link after so many bytes on the wire from `a` to `b`, headers included: a frame that isn't wholly sent by then is lost. */
  cutAfter(a: MemberId, b: MemberId, bytes: number): void {
    this.#network(a).find(b)?.cutAfter(bytes);
  }

  /** Breaks a link; what is on the way is lost. */
  cut(a: MemberId, b: MemberId): void {
    this.#networks.get(a)?.find(b)?.break();
  }

  /** Ends a member as when its tab crashes: its links break, and it hears of nothing any more. */
  kill(member: MemberId): void {
    const network = this.#networks.get(member);
    if (network === undefined) return;
    this.#networks.delete(member);
    network.silence();
  }

  /** Runs what falls due at the same moment in one turn of the clock, which takes far longer than a frame where there are a thousand members. */
  together(due: number, callback: () => void): void {
    const { clock } = this.options;
    const others = this.#due.get(due);
    if (others !== undefined) {
      others.push(callback);
      return;
    }
    const callbacks = [callback];
    this.#due.set(due, callbacks);
    clock.setTimeout(() => {
      this.#due.delete(due);
      for (const each of callbacks) each();
    }, due - clock.now());
  }

  #network(member: MemberId): SimulatedNetwork {
    const network = this.#networks.get(member);
    if (network === undefined) throw new Error(`Member ${shortId(member)} isn't in this hub.`);
    return network;
  }
}

/** When a member's line is free again, each way, in milliseconds. */
interface Line {
  sendsFrom: number;
  receivesFrom: number;
}

class SimulatedNetwork implements Network {
  onRefused: ((sentence: string) => void) | null = null;
  onLink: ((link: Link) => void) | null = null;
  readonly line: Line = { sendsFrom: 0, receivesFrom: 0 };
  readonly #links = new Map<MemberId, SimulatedLink>();
  readonly #hub: SimulatedHub;

  constructor(
    readonly self: MemberId,
    hub: SimulatedHub,
  ) {
    this.#hub = hub;
  }

  get links(): ReadonlyMap<MemberId, Link> {
    return this.#links;
  }

  /** Links come about without a handshake here. */
  async dial(peer: MemberId): Promise<Link> {
    return this.#hub.connect(this.self, peer);
  }

  close(reason: string): void {
    for (const link of [...this.#links.values()]) link.close(reason);
  }

  find(peer: MemberId): SimulatedLink | undefined {
    return this.#links.get(peer);
  }

  add(link: SimulatedLink): void {
    this.#links.set(link.peer, link);
    queueMicrotask(() => {
      if (link.open) this.onLink?.(link);
    });
  }

  remove(link: SimulatedLink): void {
    if (this.#links.get(link.peer) === link) this.#links.delete(link.peer);
  }

  silence(): void {
    this.onLink = null;
    for (const link of [...this.#links.values()]) link.silence();
  }
}

class SimulatedLink extends BaseLink implements Link {
  readonly maxPayload: number;
  readonly #network: SimulatedNetwork;
  readonly #hub: SimulatedHub;
  #other: SimulatedLink | null = null;
  /** What is on its way to the other side: timers of equal times keep its order. */
  readonly #onWay: (() => void)[] = [];
  #lastSent = 0;
  #lastArrival = 0;
  /** Bytes that are still sent before the link breaks. */
  #bytesLeft = Number.POSITIVE_INFINITY;
  /** What comes over it doesn't arrive any more. */
  #broken = false;

  constructor(
    network: SimulatedNetwork,
    readonly peer: MemberId,
    hub: SimulatedHub,
  ) {
    super();
    this.#network = network;
    this.#hub = hub;
    this.maxPayload = hub.options.maxPayload;
  }

  attach(other: SimulatedLink): void {
    this.#other = other;
  }

  send(header: FrameHeader, payload: Uint8Array<ArrayBufferLike>): void {
    this.checkSize(payload);
    const other = this.#other;
    if (!this.open || other === null) return;
    const { clock, copies } = this.#hub.options;
    const bytes = payload.length + headerBytes;
    this.count.sentPayload += payload.length;
    this.count.sentTotal += bytes;
    const { kind, epoch, step, channel, offset } = header;
    const sent = this.#departure(bytes);
    if (bytes > this.#bytesLeft) {
      this.#bytesLeft = 0;
      clock.setTimeout(() => this.break(), sent - clock.now());
      return;
    }
    this.#bytesLeft -= bytes;
    const arrival = this.#arrival(other, sent, bytes);
    if (!copies && payload.buffer instanceof ArrayBuffer) {
      const content = new Uint8Array(payload.buffer, payload.byteOffset, payload.length);
      this.#onWay.push(() => other.#arrive({ kind, epoch, step, channel, offset, payload: content }, bytes));
      this.#hub.together(arrival, () => this.#deliver());
      return;
    }
    clock.setTimeout(() => {
      const content = new Uint8Array(payload);
      this.#onWay.push(() => other.#arrive({ kind, epoch, step, channel, offset, payload: content }, bytes));
      clock.setTimeout(() => this.#deliver(), arrival - sent);
    }, sent - clock.now());
  }

  drained(): Promise<void> {
    const { clock } = this.#hub.options;
    const wait = this.#lastSent - clock.now();
    if (!this.open || wait <= 0) return Promise.resolve();
    return new Promise((resolve) => clock.setTimeout(resolve, wait));
  }

  close(reason: string): void {
    if (!this.open) return;
    const { clock } = this.#hub.options;
    const other = this.#other;
    const now = clock.now();
    this.#end(reason);
    if (other === null || this.#broken) return;
    const sent = Math.max(now, this.#lastSent);
    const arrival = this.#arrival(other, sent, 0);
    clock.setTimeout(() => {
      this.#onWay.push(() => other.#end(reason));
      clock.setTimeout(() => this.#deliver(), arrival - sent);
    }, sent - now);
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = bytes;
  }

  /** Both sides learn of it at once; what is on the way is lost. */
  break(): void {
    const other = this.#other;
    this.#broken = true;
    this.#end(`The link to member ${shortId(this.peer)} broke.`);
    if (other === null) return;
    other.#broken = true;
    other.#end(`The link to member ${shortId(other.peer)} broke.`);
  }

  silence(): void {
    this.forgetUsers();
    this.break();
  }

  /** When the last byte is sent. */
  #departure(bytes: number): number {
    const { clock, bytesPerSecond, stalls } = this.#hub.options;
    const { line } = this.#network;
    const stall =
      stalls.chance > 0 && this.#hub.random() < stalls.chance ? this.#hub.random() * stalls.milliseconds : 0;
    line.sendsFrom = Math.max(line.sendsFrom, clock.now()) + stall + (bytes / bytesPerSecond) * 1000;
    this.#lastSent = line.sendsFrom;
    return line.sendsFrom;
  }

  /** When the last byte is received. */
  #arrival(other: SimulatedLink, sent: number, bytes: number): number {
    const { bytesPerSecond, latency } = this.#hub.options;
    const [shortest, longest] = latency;
    const way = shortest === longest ? shortest : shortest + (longest - shortest) * this.#hub.random();
    const { line } = other.#network;
    // On an idle line the bytes come in while they are sent.
    line.receivesFrom = Math.max(sent + way, line.receivesFrom + (bytes / bytesPerSecond) * 1000);
    this.#lastArrival = Math.max(this.#lastArrival, line.receivesFrom);
    return this.#lastArrival;
  }

  #deliver(): void {
    const next = this.#onWay.shift();
    if (next !== undefined && !this.#broken) next();
  }

  #arrive(frame: Frame, bytes: number): void {
    if (!this.open || this.#broken) return;
    this.count.receivedPayload += frame.payload.length;
    this.count.receivedTotal += bytes;
    this.deliver(frame);
  }

  #end(reason: string): void {
    if (!this.open) return;
    this.markClosed(reason);
    this.#network.remove(this);
    this.tellClose();
  }
}

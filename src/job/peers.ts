import { messageOf } from "../base/messageOf";
import type { Frame, FrameHeader, Link, MemberId, Network } from "../transport/link";
import { shortId } from "../transport/memberId";
import type { ByteMeter } from "./byteMeter";
import { type ControlMessage, decodeMessage, encodeMessage } from "./messages";
import type { GpuDescription } from "./snapshot";

/** Who someone is, by their own account. */
export interface Person {
  readonly name: string;
  readonly gpu: GpuDescription;
}

/** What comes from the peers, and what they need to know of this tab. */
export interface PeersHost {
  /** The highest epoch known here. */
  epoch(): number;
  /** Whether this tab is in the ring. */
  isMember(): boolean;
  /** Who someone without a link is, if another told. */
  hearsay(id: MemberId): Person | undefined;
  onLinked(peer: MemberId): void;
  onUnlinked(peer: MemberId, reason: string): void;
  onMessage(from: MemberId, message: ControlMessage): void;
  onChunk(from: MemberId, frame: Frame): void;
  onState(from: MemberId, frame: Frame): void;
  /** Somebody sent what can't be and is dropped. */
  onDropped(sentence: string): void;
}

/** The links of this tab: control messages in and out, who is who, and who sends nonsense. */
export class Peers {
  readonly self: Person;
  readonly #network: Network;
  readonly #meter: ByteMeter;
  readonly #host: PeersHost;
  readonly #links = new Map<MemberId, Link>();
  readonly #people = new Map<MemberId, Person>();
  #closed = false;

  constructor(network: Network, self: Person, meter: ByteMeter, host: PeersHost) {
    this.#network = network;
    this.self = { name: self.name.slice(0, 64), gpu: self.gpu };
    this.#meter = meter;
    this.#host = host;
  }

  /** Begins to listen. `early`: frames of the first link that came before there was anyone to take them. */
  open(first: Link | null, early: readonly Frame[]): void {
    this.#network.onLink = (link) => this.attach(link);
    if (first !== null) this.attach(first, early);
    for (const link of this.#network.links.values()) this.attach(link);
  }

  close(reason: string): void {
    this.#closed = true;
    this.#network.close(reason);
  }

  get ids(): readonly MemberId[] {
    return [...this.#links.keys()];
  }
  has(peer: MemberId): boolean {
    return this.#links.has(peer);
  }
  link(peer: MemberId): Link | undefined {
    return this.#links.get(peer);
  }

  person(id: MemberId): Person {
    if (id === this.#network.self) return this.self;
    const known = this.#people.get(id) ?? this.#host.hearsay(id);
    return { name: known?.name || shortId(id), gpu: known?.gpu ?? unknownGpu };
  }

  /** Takes a link in; the latest link to a peer is the one that counts. */
  attach(link: Link, early: readonly Frame[] = []): void {
    const { peer } = link;
    if (this.#closed || this.#links.get(peer) === link) return;
    this.#links.set(peer, link);
    this.#meter.add(link.counters);
    link.onClose = (reason) => {
      this.#meter.remove(link.counters);
      if (this.#links.get(peer) !== link) return;
      this.#links.delete(peer);
      if (!this.#closed) this.#host.onUnlinked(peer, reason);
    };
    // It may have been gone already, which was told at once.
    if (!this.has(peer)) return;
    this.send(peer, { kind: "hello", ...this.self, member: this.#host.isMember() });
    this.#host.onLinked(peer);
    for (const frame of early) this.#onFrame(link, frame);
    link.onFrame = (frame) => this.#onFrame(link, frame);
  }

  /** A message to a peer without a link is dropped: that the link is gone was told. */
  send(to: MemberId, message: ControlMessage): void {
    const link = this.#links.get(to);
    if (link !== undefined) sendControl(link, this.#host.epoch(), message);
  }

  toAll(message: ControlMessage): void {
    for (const peer of this.#links.keys()) this.send(peer, message);
  }

  drop(peer: MemberId, sentence: string): void {
    const whole = `${this.person(peer).name} is dropped: ${sentence}`;
    this.#host.onDropped(whole);
    this.#links.get(peer)?.close(whole);
  }

  #onFrame(link: Link, frame: Frame): void {
    const from = link.peer;
    if (this.#closed || this.#links.get(from) !== link) return;
    switch (frame.kind) {
      case "control":
        this.#onControl(from, frame);
        break;
      case "chunk":
        this.#host.onChunk(from, frame);
        break;
      case "state":
        this.#host.onState(from, frame);
        break;
      case "heartbeat":
      case "signal":
        this.drop(from, `It sent a frame of kind ${frame.kind} to the job, which belongs to the link.`);
        break;
    }
  }

  #onControl(from: MemberId, frame: Frame): void {
    let message: ControlMessage;
    try {
      message = decodeMessage(frame.payload);
    } catch (error) {
      this.drop(from, messageOf(error));
      return;
    }
    if (message.kind === "hello") this.#people.set(from, { name: message.name, gpu: message.gpu });
    this.#host.onMessage(from, message);
  }
}

const unknownGpu: GpuDescription = { vendor: "", architecture: "", description: "" };

export function sendControl(link: Link, epoch: number, message: ControlMessage): void {
  const header: FrameHeader = { kind: "control", epoch, step: 0, channel: 0, offset: 0 };
  link.send(header, encodeMessage(message));
}

import type { Clock, TimerHandle } from "../base/clock";
import { BaseLink } from "./baseLink";
import { decodeFrame, encodeFrame, headerBytes, type WireHeader } from "./frame";
import type { Frame, FrameHeader, Link, MemberId } from "./link";
import { shortId } from "./memberId";
import { highWaterBytes, type Pipe } from "./pipe";

/** Every browser takes messages of this size. */
const messageBytes = 64 * 1024;
const heartbeatMilliseconds = 1000;
/** Long enough for a machine that is busy, or was frozen for a moment. */
const silenceMilliseconds = 12_000;
/** A tick that comes later than this found this side itself asleep, which tells nothing of the peer. */
const longestTickMilliseconds = 2000;
/** The most that a closing link still hands to the channel; far more than that closes the channel with an error. */
const flushBytes = 8 * 1024 * 1024;
const goodbyeBytes = 1024;
const nothing = new Uint8Array(0);
const linkHeader = { epoch: 0, step: 0, channel: 0, offset: 0 } as const;

interface Queued {
  readonly header: WireHeader;
  readonly payload: Uint8Array<ArrayBufferLike>;
}

export interface ChannelLinkOptions {
  readonly pipe: Pipe;
  readonly peer: MemberId;
  /** The largest message that the peer takes, in bytes. */
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  /** Messages that came right after the proof. */
  readonly received: readonly ArrayBuffer[];
}

/** A proven link over an open pipe. */
export class ChannelLink extends BaseLink implements Link {
  readonly peer: MemberId;
  readonly maxPayload: number;
  /** Called once, before onClose, for the network that holds this link. */
  onGone: (() => void) | null = null;
  /** Gets signal frames, which aren't for the link's users. */
  onSignal: ((frame: Frame) => void) | null = null;
  readonly #pipe: Pipe;
  readonly #clock: Clock;
  /** The pipe copies what it is given, so that one buffer serves all messages. */
  readonly #message: Uint8Array<ArrayBuffer>;
  #queue: Queued[] = [];
  #queueHead = 0;
  #queuedBytes = 0;
  #waiting: (() => void)[] = [];
  #timer: TimerHandle | null = null;
  #lastTick: number;
  #silence = 0;
  #sentSinceTick = false;

  constructor(options: ChannelLinkOptions) {
    super();
    const { pipe, peer, clock } = options;
    this.peer = peer;
    this.#pipe = pipe;
    this.#clock = clock;
    const size = Math.min(messageBytes, options.maxMessageBytes);
    this.maxPayload = size - headerBytes;
    this.#message = new Uint8Array(size);
    this.#lastTick = clock.now();
    pipe.onMessage = (message) => this.#receive(message);
    pipe.onLow = () => this.#pump();
    pipe.onClose = (reason) => this.#end(`The link to member ${shortId(peer)} is gone. ${reason}`);
    this.#tick();
    // Its users get hold of the link first.
    queueMicrotask(() => {
      for (const message of options.received) this.#receive(message);
      if (pipe.state === "closed") this.#end(`The link to member ${shortId(peer)} is gone. Its connection closed.`);
    });
  }

  send(header: FrameHeader, payload: Uint8Array<ArrayBufferLike>): void {
    this.checkSize(payload);
    if (!this.open) return;
    if (this.#queueHead === this.#queue.length && this.#mayPush(payload)) {
      this.#push(header, payload);
      return;
    }
    this.#queue.push({ header, payload });
    this.#queuedBytes += headerBytes + payload.length;
  }

  drained(): Promise<void> {
    if (!this.open || this.#queueHead === this.#queue.length) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(reason: string): void {
    if (!this.open) return;
    if (this.#queuedBytes + this.#pipe.bufferedAmount <= flushBytes)
      for (const { header, payload } of this.#queue.slice(this.#queueHead)) this.#push(header, payload);
    const goodbye = new TextEncoder().encode(reason).subarray(0, goodbyeBytes);
    this.#push({ ...linkHeader, kind: "goodbye" }, goodbye);
    this.#end(reason);
    this.#pipe.close();
  }

  #mayPush(payload: Uint8Array): boolean {
    const buffered = this.#pipe.bufferedAmount;
    return buffered === 0 || buffered + headerBytes + payload.length <= highWaterBytes;
  }

  #push(header: WireHeader, payload: Uint8Array<ArrayBufferLike>): void {
    const message = encodeFrame(header, payload, this.#message);
    this.#pipe.send(message);
    this.count.sentPayload += payload.length;
    this.count.sentTotal += message.length;
    this.#sentSinceTick = true;
  }

  #pump(): void {
    while (this.#queueHead < this.#queue.length) {
      const { header, payload } = this.#queue[this.#queueHead]!;
      if (!this.#mayPush(payload)) return;
      this.#queueHead += 1;
      this.#queuedBytes -= headerBytes + payload.length;
      this.#push(header, payload);
    }
    this.#queue.length = 0;
    this.#queueHead = 0;
    this.#release();
  }

  #receive(message: ArrayBuffer): void {
    if (!this.open) return;
    this.#silence = 0;
    const frame = decodeFrame(message);
    if (typeof frame === "string") {
      this.close(`Member ${shortId(this.peer)} was dropped. ${frame}`);
      return;
    }
    this.count.receivedPayload += frame.payload.length;
    this.count.receivedTotal += message.byteLength;
    const { kind } = frame;
    switch (kind) {
      case "heartbeat":
        return;
      case "goodbye":
        this.#end(new TextDecoder().decode(frame.payload.subarray(0, goodbyeBytes)));
        this.#pipe.close();
        return;
      case "signal":
        this.onSignal?.({ ...frame, kind });
        return;
      case "control":
      case "chunk":
      case "state":
        this.deliver({ ...frame, kind });
    }
  }

  #tick(): void {
    this.#timer = this.#clock.setTimeout(() => {
      const now = this.#clock.now();
      this.#silence += Math.min(now - this.#lastTick, longestTickMilliseconds);
      this.#lastTick = now;
      if (this.#silence >= silenceMilliseconds) {
        this.close(`Nothing came from member ${shortId(this.peer)} for ${silenceMilliseconds / 1000} s.`);
        return;
      }
      // What waits in the channel tells the peer as much as a heartbeat would.
      if (!this.#sentSinceTick && this.#pipe.bufferedAmount === 0)
        this.#push({ ...linkHeader, kind: "heartbeat" }, nothing);
      this.#sentSinceTick = false;
      this.#tick();
    }, heartbeatMilliseconds);
  }

  #end(reason: string): void {
    if (!this.open) return;
    this.markClosed(reason);
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer);
    this.#queue = [];
    this.#queueHead = 0;
    this.#release();
    this.onGone?.();
    this.tellClose();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

import type { Clock } from "../base/clock";
import { deferred } from "../base/deferred";
import type { Frame, Link, MemberId } from "../transport/link";
import { CollectiveError, type Work } from "./work";

/** The most bytes kept of messages that nobody has asked for yet. */
const earlyBytes = 64 * 1024 * 1024;
/** What an early frame costs besides its payload. */
const earlyOverheadBytes = 64;

interface MailboxOptions {
  readonly timeoutMilliseconds: number;
  readonly clock: Clock;
}

interface Reception {
  readonly into: Uint8Array<ArrayBuffer>;
  at: number;
  readonly work: SettableWork;
}

/** What comes from one peer under one tag: either receptions wait for frames, or frames for receptions. */
interface Slot {
  readonly receptions: Reception[];
  readonly early: Frame[];
}

/** Messages from one rank to another. A message is one or more frames of kind "state", whose channel is the tag and whose step the whole length in bytes. */
export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #lost = new Map<MemberId, string>();
  #earlyBytes = 0;
  #aborted: string | null = null;

  constructor(options: MailboxOptions) {
    this.#options = options;
  }

  send(link: Link, data: Float32Array<ArrayBuffer>, tag: number): Work {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const header = { kind: "state", epoch: 0, step: bytes.length, channel: tag } as const;
    // An empty message is one empty frame.
    let offset = 0;
    do {
      link.send({ ...header, offset }, bytes.subarray(offset, offset + link.maxPayload));
      offset += link.maxPayload;
    } while (offset < bytes.length);
    const work = new SettableWork("Send", this.#options);
    link.drained().then(() => {
      if (link.open) work.resolve();
      else work.abort("The link closed before everything was sent.");
    });
    return work;
  }

  /** @param name names the peer in sentences. */
  receive(peer: MemberId, name: string, data: Float32Array<ArrayBuffer>, tag: number): Work {
    const work = new SettableWork(`Recv from ${name}, tag ${tag},`, this.#options);
    const into = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const slot = this.#slot(peer, tag);
    slot.receptions.push({ into, at: 0, work });
    this.#match(slot);
    const reason = this.#aborted ?? this.#lost.get(peer);
    if (reason !== undefined) work.abort(reason);
    return work;
  }

  /** Takes in a frame. @returns null, or why the group must end. */
  take(peer: MemberId, frame: Frame): string | null {
    if (this.#aborted !== null) return null;
    const slot = this.#slot(peer, frame.channel);
    slot.early.push(frame);
    this.#earlyBytes += frame.payload.length + earlyOverheadBytes;
    this.#match(slot);
    return this.#earlyBytes > earlyBytes
      ? `sent ${this.#earlyBytes} bytes that nobody receives; at most ${earlyBytes} are kept.`
      : null;
  }

  lost(peer: MemberId, reason: string): void {
    this.#lost.set(peer, reason);
    for (const [key, slot] of this.#slots)
      if (key.startsWith(`${peer}:`)) for (const { work } of slot.receptions.splice(0)) work.abort(reason);
  }

  abort(reason: string): void {
    this.#aborted ??= reason;
    for (const slot of this.#slots.values()) for (const { work } of slot.receptions.splice(0)) work.abort(reason);
    this.#slots.clear();
  }

  #slot(peer: MemberId, tag: number): Slot {
    const key = `${peer}:${tag}`;
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = { receptions: [], early: [] };
      this.#slots.set(key, slot);
    }
    return slot;
  }

  #match(slot: Slot): void {
    while (slot.receptions.length > 0 && slot.early.length > 0) {
      const reception = slot.receptions[0]!;
      const frame = slot.early.shift()!;
      this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
      // One that was aborted takes its message with it all the same, so that later ones get theirs.
      const { into, at, work } = reception;
      if (frame.step !== into.length || frame.offset !== at || at + frame.payload.length > into.length) {
        work.abort(
          `Got ${frame.payload.length} bytes at offset ${frame.offset} of ${frame.step}, expected offset ${at} of ${into.length}.`,
        );
        slot.receptions.shift();
        continue;
      }
      if (!work.isCompleted) into.set(frame.payload, at);
      reception.at += frame.payload.length;
      work.progress();
      if (reception.at === into.length) {
        slot.receptions.shift();
        work.resolve();
      }
    }
  }
}

class SettableWork implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  readonly #name: string;
  readonly #settled = deferred<void>();
  readonly #options: MailboxOptions;
  #timer;

  constructor(name: string, options: MailboxOptions) {
    this.#name = name;
    this.#options = options;
    this.#settled.promise.catch(() => {});
    this.#timer = this.#watch();
  }

  wait(): Promise<void> {
    return this.#settled.promise;
  }

  progress(): void {
    if (this.isCompleted) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = this.#watch();
  }

  resolve(): void {
    if (this.isCompleted) return;
    this.#end();
    this.#settled.resolve();
  }

  abort(reason: string): void {
    if (this.isCompleted) return;
    this.#end();
    this.exception = new CollectiveError(`${this.#name} failed. ${reason}`);
    this.#settled.reject(this.exception);
  }

  #end(): void {
    this.isCompleted = true;
    this.#options.clock.clearTimeout(this.#timer);
  }

  #watch() {
    const { clock, timeoutMilliseconds } = this.#options;
    return clock.setTimeout(
      () => this.abort(`Nothing came for ${(timeoutMilliseconds / 1000).toFixed(1)} s.`),
      timeoutMilliseconds,
    );
  }
}

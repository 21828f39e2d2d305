import { concatBytes } from "../base/bytes";
import type { Clock } from "../base/clock";
import { deferred } from "../base/deferred";
import type { Frame, Link } from "../transport/link";
import { type Elements, type ElementType, elementTypes } from "./elementType";
import { CollectiveError, type Work } from "./work";

/** The most bytes kept of messages that nobody has asked for yet. */
const earlyBytes = 64 * 1024 * 1024;
/** What an early frame costs besides its payload. */
const earlyOverheadBytes = 64;
/** Stands for bytes in place of an element type's code. */
const bytesCode = 0;

export interface MailboxOptions {
  readonly timeoutMilliseconds: number;
  readonly clock: Clock;
}

/** Where a message belongs: the ranks of a group tell apart by tags what they send each other. */
export interface Address {
  readonly group: number;
  /** An integer from 0 to 2^32 - 1. */
  readonly tag: number;
}

/** Tags from here on are the library's own. */
export const firstReservedTag = 0x80000000;

interface Reception {
  /** Values of known type and length, or bytes of any length up to a limit. */
  readonly into: Elements | { readonly limit: number; readonly parts: Uint8Array<ArrayBuffer>[] };
  at: number;
  readonly work: SettableWork;
}

/** What comes from one rank for one address: either receptions wait for frames, or frames for receptions. */
interface Slot {
  readonly from: number;
  readonly receptions: Reception[];
  readonly early: Frame[];
}

/**
 * Messages from one rank to another, ranks being those of the whole world. A message is one or more frames of kind "state", whose epoch holds the
 * group and the element type, whose channel is the tag, and whose step is the whole length in bytes.
 */
export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #lost = new Map<number, string>();
  readonly #services = new Map<number, (from: number, message: Uint8Array<ArrayBuffer>) => void>();
  #earlyBytes = 0;
  #aborted: string | null = null;

  constructor(options: MailboxOptions) {
    this.#options = options;
  }

  send(link: Link, values: Elements, address: Address, title: string): Work {
    return this.#send(link, values.bytesOf(0, values.length), values.type.code, address, title);
  }

  sendBytes(link: Link, bytes: Uint8Array<ArrayBuffer>, address: Address, title: string): Work {
    return this.#send(link, bytes, bytesCode, address, title);
  }

  /** @param title begins the sentences about it. */
  receive(from: number, values: Elements, address: Address, title: string): Work {
    return this.#receive(from, values, address, title, this.#options.timeoutMilliseconds);
  }

  /** Receives bytes of any length up to `limit`. */
  async receiveBytes(
    from: number,
    limit: number,
    address: Address,
    title: string,
    timeoutMilliseconds = this.#options.timeoutMilliseconds,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    await this.#receive(from, { limit, parts }, address, title, timeoutMilliseconds).wait();
    return concatBytes(...parts);
  }

  /** Calls `handler` with each whole message of a tag, from anyone, in group 0. Such messages fit one frame. */
  serve(tag: number, handler: (from: number, message: Uint8Array<ArrayBuffer>) => void): void {
    this.#services.set(tag, handler);
    for (const [key, slot] of this.#slots)
      if (key.endsWith(`:0:${tag}`)) for (const frame of slot.early.splice(0)) this.#serve(slot.from, frame, handler);
  }

  /** Takes in a frame. @returns null, or why the sender must be dropped. */
  take(from: number, frame: Frame): string | null {
    if (this.#aborted !== null) return null;
    const group = Math.floor(frame.epoch / 16);
    const service = group === 0 ? this.#services.get(frame.channel) : undefined;
    this.#earlyBytes += frame.payload.length + earlyOverheadBytes;
    if (service !== undefined) {
      this.#serve(from, frame, service);
      return null;
    }
    const slot = this.#slot(from, { group, tag: frame.channel });
    slot.early.push(frame);
    this.#match(slot);
    return this.#earlyBytes > earlyBytes
      ? `It sent ${this.#earlyBytes} bytes that nobody receives; at most ${earlyBytes} are kept.`
      : null;
  }

  lost(rank: number, reason: string): void {
    this.#lost.set(rank, reason);
    for (const slot of this.#slots.values())
      if (slot.from === rank) for (const { work } of slot.receptions.splice(0)) work.abort(reason);
  }

  abort(reason: string): void {
    this.#aborted ??= reason;
    for (const slot of this.#slots.values()) for (const { work } of slot.receptions.splice(0)) work.abort(reason);
    this.#slots.clear();
  }

  #send(link: Link, bytes: Uint8Array<ArrayBuffer>, code: number, address: Address, title: string): Work {
    const header = {
      kind: "state",
      epoch: address.group * 16 + code,
      step: bytes.length,
      channel: address.tag,
    } as const;
    // An empty message is one empty frame.
    let offset = 0;
    do {
      link.send({ ...header, offset }, bytes.subarray(offset, offset + link.maxPayload));
      offset += link.maxPayload;
    } while (offset < bytes.length);
    const work = new SettableWork(title, this.#options);
    link.drained().then(() => {
      if (link.open) work.resolve();
      else work.abort("The link closed before everything was sent.");
    });
    return work;
  }

  #receive(
    from: number,
    into: Reception["into"],
    address: Address,
    title: string,
    timeoutMilliseconds: number,
  ): SettableWork {
    const work = new SettableWork(title, { ...this.#options, timeoutMilliseconds });
    const slot = this.#slot(from, address);
    slot.receptions.push({ into, at: 0, work });
    this.#match(slot);
    const reason = this.#aborted ?? this.#lost.get(from);
    if (reason !== undefined) work.abort(reason);
    return work;
  }

  #serve(from: number, frame: Frame, handler: (from: number, message: Uint8Array<ArrayBuffer>) => void): void {
    this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
    if (frame.offset === 0 && frame.step === frame.payload.length) handler(from, frame.payload);
  }

  #slot(from: number, { group, tag }: Address): Slot {
    const key = `${from}:${group}:${tag}`;
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = { from, receptions: [], early: [] };
      this.#slots.set(key, slot);
    }
    return slot;
  }

  #match(slot: Slot): void {
    while (slot.receptions.length > 0 && slot.early.length > 0) {
      const reception = slot.receptions[0]!;
      const frame = slot.early.shift()!;
      this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
      const problem = problemWith(reception, frame);
      if (problem !== null) {
        reception.work.abort(problem);
        slot.receptions.shift();
        // The rest of the message goes with it, so that later ones get theirs.
        while (slot.early[0] !== undefined && slot.early[0].offset > 0) {
          this.#earlyBytes -= slot.early[0].payload.length + earlyOverheadBytes;
          slot.early.shift();
        }
        continue;
      }
      // One that was aborted takes its message with it all the same.
      const { into, work } = reception;
      if ("parts" in into) into.parts.push(frame.payload);
      else if (!work.isCompleted) into.bytesOf(0, into.length).set(frame.payload, reception.at);
      reception.at += frame.payload.length;
      work.progress();
      if (reception.at === frame.step) {
        slot.receptions.shift();
        work.resolve();
      }
    }
  }
}

function typeName(code: number): string {
  if (code === bytesCode) return "bytes";
  const types: readonly ElementType[] = Object.values(elementTypes);
  return types.find((type) => type.code === code)?.name ?? `type ${code}`;
}

/** @returns null when the frame is what the reception waits for. */
function problemWith({ into, at }: Reception, frame: Frame): string | null {
  const code = frame.epoch % 16;
  const isBytes = "parts" in into;
  const wantedCode = isBytes ? bytesCode : into.type.code;
  if (code !== wantedCode) return `Got ${typeName(code)}, expected ${typeName(wantedCode)}.`;
  const length = isBytes ? frame.step : into.length * into.type.bytes;
  if (isBytes && length > into.limit) return `Got ${length} bytes, expected at most ${into.limit}.`;
  if (frame.step !== length || frame.offset !== at || at + frame.payload.length > length)
    return `Got ${frame.payload.length} bytes at offset ${frame.offset} of ${frame.step}, expected offset ${at} of ${length}.`;
  return null;
}

class SettableWork implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  readonly #title: string;
  readonly #settled = deferred<void>();
  readonly #options: MailboxOptions;
  #timer;

  constructor(title: string, options: MailboxOptions) {
    this.#title = title;
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
    this.exception = new CollectiveError(`${this.#title} failed. ${reason}`);
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

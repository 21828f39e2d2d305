import { bytesOf, type Elements } from "./elementType";
import type { PartialArray } from "./reduceOp";
import type { Reduction } from "./reduction";
import { type Format, formatOf, type Incoming, type Round, type Schedule } from "./schedule";

/** Sends a chunk to a rank. The payload must not change until it is sent. */
export type SendChunk = (to: number, offset: number, payload: Uint8Array<ArrayBuffer>) => void;

/** What is wrong with a chunk, and whose it is. */
export interface Problem {
  readonly from: number;
  readonly sentence: string;
}

export interface CollectiveOptions {
  readonly schedule: Schedule;
  /** What this member gives. */
  readonly input: Elements;
  /** What it gets; may be the input itself. */
  readonly output: Elements;
  /** Null for collectives that combine nothing. */
  readonly reduction: Reduction | null;
  /** The most bytes in a chunk, a multiple of 4; all members must pass the same. */
  readonly chunkBytes: number;
}

/** Where a round stands with one peer. */
interface Lane {
  readonly transfers: Iterator<Incoming>;
  current: Incoming | null;
  /** Elements of the current transfer that have come. */
  done: number;
}

interface Chunk {
  readonly offset: number;
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** What is still to come from one peer. */
interface Quota {
  bytes: number;
  chunks: number;
}

/**
 * One member's part of a collective, as a state machine: chunks in, chunks out. It runs whatever schedule it is given.
 *
 * Partial values are combined into the chunk that brought them, which then travels on: the input is only read, so its views may wait to be
 * sent, and the output changes in the last step alone.
 */
export class Collective {
  readonly #options: CollectiveOptions;
  readonly #rounds: Iterator<Round>;
  readonly #quotas = new Map<number, Quota>();
  #lanes = new Map<number, Lane>();
  /** Lanes of this round that are still to end. */
  #open = 0;
  /** Chunks of later rounds. */
  readonly #early = new Map<number, Chunk[]>();
  /** What stands in for the input after a "hold", by where it begins there. */
  readonly #held = new Map<number, PartialArray>();
  #isStarted = false;
  #isDone = false;
  #received = 0;
  #total = 0;

  constructor(options: CollectiveOptions) {
    if (!Number.isInteger(options.chunkBytes) || options.chunkBytes < 4 || options.chunkBytes % 4 !== 0)
      throw new RangeError(
        `A collective got chunks of ${options.chunkBytes} bytes; they must be a positive multiple of 4.`,
      );
    this.#options = options;
    this.#rounds = options.schedule.rounds()[Symbol.iterator]();
    this.#plan();
  }

  /** True once the output holds the result; nothing more comes after that. */
  get done(): boolean {
    return this.#isDone;
  }

  /** Bytes received so far, and in all. */
  get received(): number {
    return this.#received;
  }
  get total(): number {
    return this.#total;
  }

  /** The ranks without whose chunks it doesn't go on. */
  get waitingFor(): readonly number[] {
    return [...this.#lanes].flatMap(([rank, lane]) => (lane.current === null ? [] : [rank]));
  }

  /** Whether anything is still to come from a rank. */
  needs(rank: number): boolean {
    return (this.#quotas.get(rank)?.chunks ?? 0) > 0;
  }

  start(send: SendChunk): void {
    if (this.#isStarted) throw new Error("A collective was started twice.");
    this.#isStarted = true;
    this.#nextRound(send);
  }

  /**
   * Takes in a chunk, whose bytes are its own from then on, and sends what follows from it.
   * @returns null, or what is wrong with a chunk, which then changed nothing.
   */
  receive(from: number, offset: number, payload: Uint8Array<ArrayBuffer>, send: SendChunk): Problem | null {
    const quota = this.#quotas.get(from);
    const got = `got ${payload.length} bytes at offset ${offset}`;
    if (quota === undefined) return { from, sentence: `${got}, expected nothing from it` };
    const lane = this.#lanes.get(from);
    if (lane === undefined || lane.current === null) {
      // A chunk of a later round; what is kept is bounded by what is to come at all.
      if (quota.chunks < 1 || quota.bytes < payload.length) return { from, sentence: `${got}, expected nothing more` };
      this.#count(quota, payload);
      const chunks = this.#early.get(from);
      if (chunks === undefined) this.#early.set(from, [{ offset, payload }]);
      else chunks.push({ offset, payload });
      return null;
    }
    const sentence = this.#take(lane, lane.current, offset, payload, send);
    if (sentence !== null) return { from, sentence };
    this.#count(quota, payload);
    return this.#open === 0 ? this.#goOn(send) : null;
  }

  #goOn(send: SendChunk): Problem | null {
    this.#nextRound(send);
    // Chunks that came early may end rounds in turn.
    for (const [from, chunks] of this.#early) {
      while (chunks.length > 0) {
        const lane = this.#lanes.get(from);
        if (lane === undefined || lane.current === null) break;
        const { offset, payload } = chunks.shift()!;
        const sentence = this.#take(lane, lane.current, offset, payload, send);
        if (sentence !== null) return { from, sentence };
        if (this.#open === 0) return this.#goOn(send);
      }
    }
    return null;
  }

  #nextRound(send: SendChunk): void {
    do {
      const next = this.#rounds.next();
      if (next.done === true) {
        this.#isDone = true;
        this.#lanes = new Map();
        return;
      }
      this.#lanes = new Map();
      for (const [from, transfers] of next.value.lanes) {
        const lane: Lane = { transfers: transfers[Symbol.iterator](), current: null, done: 0 };
        this.#advance(lane);
        if (lane.current !== null) this.#lanes.set(from, lane);
      }
      this.#open = this.#lanes.size;
      for (const { to, offset, length, format, source, at } of next.value.sends)
        this.#chunks(length, (done, count) => {
          const bytes = format === "final" ? this.#bytesOf(source, at + done, count) : this.#partial(at + done, count);
          send(to, (offset + done) * this.#unit(format), bytes);
        });
    } while (this.#open === 0);
  }

  #take(
    lane: Lane,
    incoming: Incoming,
    offset: number,
    payload: Uint8Array<ArrayBuffer>,
    send: SendChunk,
  ): string | null {
    const format = formatOf(incoming);
    const unit = this.#unit(format);
    const count = Math.min(incoming.length - lane.done, this.#perChunk);
    const at = incoming.offset + lane.done;
    if (offset !== at * unit || payload.length !== count * unit)
      return `got ${payload.length} bytes at offset ${offset}, expected ${count * unit} bytes at offset ${at * unit}`;
    const outgoing = this.#apply(incoming, lane.done, count, payload);
    this.#received += payload.length;
    lane.done += count;
    const { forward } = incoming;
    if (lane.done === incoming.length) {
      this.#advance(lane);
      if (lane.current === null) this.#open -= 1;
    }
    for (const to of forward) send(to, at * this.#unit(outgoing.format), outgoing.bytes);
    return null;
  }

  /** @returns what is passed on. */
  #apply(
    { action }: Incoming,
    done: number,
    count: number,
    payload: Uint8Array<ArrayBuffer>,
  ): { readonly bytes: Uint8Array<ArrayBuffer>; readonly format: Format } {
    const { output } = this.#options;
    switch (action.kind) {
      case "store":
        output.storeBytes(action.at + done, payload);
        return { bytes: payload, format: "final" };
      case "pass":
        return { bytes: payload, format: "final" };
      case "combine":
      case "hold": {
        const values = this.#combine(action.at + done, count, payload);
        if (action.kind === "hold") this.#held.set(action.at + done, values);
        return { bytes: bytesOf(values), format: "partial" };
      }
      case "reduce": {
        const values = this.#combine(action.at + done, count, payload);
        this.#reduction.finish(values, this.#options.schedule.isReplicated);
        output.storePartial(action.to + done, values);
        // What goes on is what is stored here, to the bit.
        return { bytes: output.bytesOf(action.to + done, action.to + done + count), format: "final" };
      }
    }
  }

  #combine(at: number, count: number, payload: Uint8Array<ArrayBuffer>): PartialArray {
    const { input } = this.#options;
    const { partialBytes } = input.type;
    // Frames' headers are a multiple of 4 long, so that a copy for alignment is the exception.
    const values = input.type.viewPartial(payload.byteOffset % partialBytes === 0 ? payload : payload.slice());
    this.#reduction.combine(values, this.#held.get(at) ?? input.partialOf(at, at + count));
    return values;
  }

  get #reduction(): Reduction {
    const { reduction } = this.#options;
    if (reduction === null) throw new Error("A schedule combines values, but nothing says how.");
    return reduction;
  }

  #count(quota: Quota, payload: Uint8Array): void {
    quota.chunks -= 1;
    quota.bytes -= payload.length;
  }

  #advance(lane: Lane): void {
    const next = lane.transfers.next();
    lane.current = next.done === true ? null : next.value;
    lane.done = 0;
  }

  /** Counts what is to come. */
  #plan(): void {
    for (const { lanes } of this.#options.schedule.rounds())
      for (const [from, transfers] of lanes)
        for (const incoming of transfers) {
          const format = formatOf(incoming);
          const bytes = incoming.length * this.#unit(format);
          const quota = this.#quotas.get(from) ?? { bytes: 0, chunks: 0 };
          quota.bytes += bytes;
          quota.chunks += Math.max(1, Math.ceil(incoming.length / this.#perChunk));
          this.#quotas.set(from, quota);
          this.#total += bytes;
        }
  }

  /** Cuts a transfer; an empty one is one empty chunk. */
  #chunks(length: number, chunk: (done: number, count: number) => void): void {
    const size = this.#perChunk;
    let done = 0;
    do {
      chunk(done, Math.min(size, length - done));
      done += size;
    } while (done < length);
  }

  #bytesOf(source: "input" | "output", at: number, count: number): Uint8Array<ArrayBuffer> {
    return this.#options[source].bytesOf(at, at + count);
  }

  #partial(at: number, count: number): Uint8Array<ArrayBuffer> {
    const bytes = bytesOf(this.#options.input.partialOf(at, at + count));
    // Where everyone computes the whole, the result may be there, and in the input's place, before this is sent.
    return this.#options.schedule.isReplicated ? bytes.slice() : bytes;
  }

  /** Bytes of an element on the wire. */
  #unit(format: Format): number {
    const { type } = this.#options.input;
    return format === "final" ? type.bytes : type.partialBytes;
  }

  /** Elements of a whole chunk: the same for both formats, as a chunk may change its own on the way. */
  get #perChunk(): number {
    return Math.floor(this.#options.chunkBytes / this.#options.input.type.partialBytes);
  }
}

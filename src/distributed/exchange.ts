import { type Clock, realClock } from "../base/clock";
import type { Frame, FrameHeader } from "../transport/link";
import type { Collective } from "./collective";
import { Operation } from "./operation";

/** Bytes of a chunk: with its frame's header below the 64 KiB that every browser takes in a message. */
export const defaultChunkBytes = 63 * 1024;

/** What an early chunk costs besides its payload, so that empty ones are bounded too. */
const earlyOverheadBytes = 64;
/** The offset of an announcement: a chunk that only says which operation its sender has started. */
const announcementOffset = 0xffffffff;
const nothing = new Uint8Array(0);
/** Failures kept of operations that this member hasn't started. */
const doomedLimit = 1024;

/** Names an operation; all members must use the same tags. The steps of a channel grow. */
export interface OperationTag {
  /** The training step, or a sequence number. */
  readonly step: number;
  /** Tells apart what runs at once in a step; in a signed exchange, the operation's signature. */
  readonly channel: number;
}

export interface ExchangeOptions {
  readonly rank: number;
  readonly worldSize: number;
  readonly epoch: number;
  /**
   * Whether a tag's channel is a signature of what the operation does. Steps alone name operations then, and a chunk of another signature shows
   * that its sender does something else.
   */
  readonly isSigned: boolean;
  /** How sentences call a rank. */
  nameOf(rank: number): string;
  /** Queues a frame, and returns before that rank handles it. The payload is often a view of the data. */
  send(to: number, header: FrameHeader, payload: Uint8Array<ArrayBuffer>): void;
  /** Resolves when everything queued to a rank is sent, or can't be any more: Link.drained. */
  drained(to: number): Promise<void>;
  /** How long an operation may go without a chunk. */
  readonly timeoutMilliseconds: number;
  /** The most bytes kept of operations that this member hasn't started yet; what two steps move is ample. */
  readonly earlyBytes?: number;
  readonly clock?: Clock;
  /** Called when an operation has failed here. */
  readonly onFailed?: (operation: Operation, step: number) => void;
  /** Called when the exchange has ended for a reason of its own. */
  readonly onAborted?: (reason: string) => void;
  /** Called when a rank is found to do something else in a step than this member does. */
  readonly onDiffers?: (from: number, step: number) => void;
  /** What more there is to say of an operation's time-out. */
  readonly explain?: (operation: Operation, step: number) => Promise<string>;
}

interface EarlyFrame {
  readonly from: number;
  readonly frame: Frame;
}

/** What is known of the operations of a channel, or of all in a signed exchange. */
interface Lane {
  /** The latest step that was started here. */
  step: number;
  hasFailed: boolean;
  readonly active: Map<number, Operation>;
  readonly early: Map<number, EarlyFrame[]>;
}

/** The operations under way between members, any number at once. One that fails leaves the others alone; `abort` ends them all. */
export class Exchange {
  /** Chunks that were dropped because they belong to another epoch or to an operation that failed here. */
  ignored = 0;
  readonly #options: ExchangeOptions;
  readonly #clock: Clock;
  readonly #lanes = new Map<number, Lane>();
  readonly #signatures = new WeakMap<Operation, number>();
  /** Why operations fail that this member hasn't started, by step. */
  readonly #doomed = new Map<number, string>();
  #earlyBytes = 0;
  #aborted: string | null = null;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? realClock;
  }

  /** Why no more operations are taken; null while they are. */
  get aborted(): string | null {
    return this.#aborted;
  }

  /** Bytes of chunks that came before their operation was started here. */
  get earlyBytes(): number {
    return this.#earlyBytes;
  }

  /** The operation of a step, while it is under way. For signed exchanges. */
  active(step: number): Operation | null {
    return this.#lanes.get(0)?.active.get(step) ?? null;
  }

  /** @param title begins the sentences about it. */
  start(title: string, collective: Collective, tag: OperationTag): Operation {
    const { epoch, isSigned, rank, worldSize, explain } = this.#options;
    const lane = this.#lane(tag);
    if (tag.step <= lane.step)
      throw new RangeError(
        isSigned
          ? `${title}: operation ${lane.step} was started before.`
          : `${title}: step ${lane.step} of that channel was started before.`,
      );
    const header = { kind: "chunk", epoch, step: tag.step, channel: tag.channel } as const;
    const operation: Operation = new Operation({
      title,
      collective,
      clock: this.#clock,
      timeoutMilliseconds: this.#options.timeoutMilliseconds,
      nameOf: (other) => this.#options.nameOf(other),
      send: (to, offset, payload) => this.#options.send(to, { ...header, offset }, payload),
      drained: (to) => this.#options.drained(to),
      ended: () => this.#ended(lane, operation, tag.step),
      explain: explain === undefined ? null : () => explain(operation, tag.step),
    });
    lane.step = tag.step;
    lane.hasFailed = false;
    lane.active.set(tag.step, operation);
    this.#signatures.set(operation, tag.channel);
    const early = lane.early.get(tag.step) ?? [];
    lane.early.delete(tag.step);
    for (const { frame } of early) this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
    const doom = this.#aborted ?? this.#doomed.get(tag.step);
    this.#doomed.delete(tag.step);
    if (doom !== undefined) {
      operation.abort(doom, true);
      return operation;
    }
    operation.start();
    // Two ranks that do different things may both wait: a word to the right neighbour shows it.
    const right = (rank + 1) % worldSize;
    if (isSigned && worldSize > 1 && !operation.destinations.has(right))
      this.#options.send(right, { ...header, offset: announcementOffset }, nothing);
    for (const { from, frame } of early) this.receive(from, frame);
    return operation;
  }

  /** Takes in a frame of kind "chunk". Whatever is wrong with it fails the operation it names, or the exchange when it names none. */
  receive(from: number, frame: Frame): void {
    if (frame.epoch !== this.#options.epoch || this.#aborted !== null) {
      this.ignored += 1;
      return;
    }
    const lane = this.#lane(frame);
    const operation = lane.active.get(frame.step);
    if (operation === undefined) this.#receiveOther(lane, from, frame);
    else if (this.#options.isSigned && frame.channel !== this.#signatures.get(operation))
      this.#options.onDiffers?.(from, frame.step);
    else if (!this.#isAnnouncement(frame)) {
      const problem = operation.receive(from, frame.offset, frame.payload);
      if (problem !== null) operation.abort(`${this.#where(problem.from, frame)}: ${problem.sentence}.`);
    }
  }

  /** Another member says that an operation failed. One that this member hasn't started fails when it does. */
  fail(step: number, reason: string): void {
    const lane = this.#lane({ step, channel: 0 });
    const operation = lane.active.get(step);
    if (operation !== undefined) operation.abort(reason, true);
    else if (step > lane.step && !this.#doomed.has(step) && this.#doomed.size < doomedLimit)
      this.#doomed.set(step, reason);
  }

  /** Nothing more comes from a rank: operations that need more of it fail. */
  lost(rank: number, reason: string): void {
    for (const { active } of this.#lanes.values())
      for (const operation of [...active.values()]) if (operation.collective.needs(rank)) operation.abort(reason);
  }

  /** This member won't start an operation that the others do. */
  refuse(step: number): void {
    const lane = this.#lane({ step, channel: 0 });
    if (step <= lane.step) return;
    lane.step = step;
    lane.hasFailed = true;
    for (const { frame } of lane.early.get(step) ?? []) this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
    lane.early.delete(step);
    this.#doomed.delete(step);
  }

  /**
   * Ends all operations and the exchange.
   * @param isKnown whether the other members know already.
   */
  abort(reason: string, isKnown = false): void {
    if (this.#aborted !== null) return;
    this.#aborted = reason;
    this.#earlyBytes = 0;
    for (const { active, early } of this.#lanes.values()) {
      early.clear();
      for (const operation of [...active.values()]) operation.abort(reason, true);
    }
    if (!isKnown) this.#options.onAborted?.(reason);
  }

  #receiveOther(lane: Lane, from: number, frame: Frame): void {
    if (frame.step > lane.step) {
      this.#keep(lane, from, frame);
      return;
    }
    if (this.#isAnnouncement(frame)) return;
    // In a signed exchange only the last operation's failure is known for sure; what is late of an earlier one changes nothing.
    if (lane.hasFailed || this.#options.isSigned) this.ignored += 1;
    else
      this.abort(
        `${this.#where(from, frame)}: got ${frame.payload.length} bytes at offset ${frame.offset}, expected nothing more, as that operation is complete.`,
      );
  }

  #keep(lane: Lane, from: number, frame: Frame): void {
    const limit = this.#options.earlyBytes ?? 64 * 1024 * 1024;
    this.#earlyBytes += frame.payload.length + earlyOverheadBytes;
    if (this.#earlyBytes > limit) {
      this.abort(
        `${this.#where(from, frame)}: got ${this.#earlyBytes} bytes of operations that this member hasn't started, expected at most ${limit}.`,
      );
      return;
    }
    const frames = lane.early.get(frame.step);
    if (frames === undefined) lane.early.set(frame.step, [{ from, frame }]);
    else frames.push({ from, frame });
  }

  #ended(lane: Lane, operation: Operation, step: number): void {
    lane.active.delete(step);
    if (operation.exception === null) return;
    if (lane.step === step) lane.hasFailed = true;
    this.#options.onFailed?.(operation, step);
  }

  #isAnnouncement(frame: Frame): boolean {
    return this.#options.isSigned && frame.offset === announcementOffset;
  }

  #lane(tag: OperationTag): Lane {
    const key = this.#options.isSigned ? 0 : tag.channel;
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = { step: -1, hasFailed: false, active: new Map(), early: new Map() };
      this.#lanes.set(key, lane);
    }
    return lane;
  }

  #where(from: number, tag: OperationTag): string {
    const name = this.#options.nameOf(from);
    const begin = name.charAt(0).toUpperCase() + name.slice(1);
    return this.#options.isSigned ? begin : `${begin}, step ${tag.step}, channel ${tag.channel}`;
  }
}

import { type Clock, realClock, type TimerHandle } from "../base/clock";
import { deferred } from "../base/deferred";
import type { Frame, FrameHeader, MemberId } from "../transport/link";
import { shortId } from "../transport/memberId";
import { RingAllReduce } from "./ringAllReduce";
import { RingBroadcast } from "./ringBroadcast";
import type { RingCollective, SendChunk } from "./ringCollective";
import { CollectiveError, type Work } from "./work";

/** Bytes of a chunk: with its frame's header below the 64 KiB that every browser takes in a message. */
export const defaultChunkBytes = 63 * 1024;

/** What an early chunk costs besides its payload, so that empty ones are bounded too. */
const earlyOverheadBytes = 64;

export interface RingOptions {
  readonly self: MemberId;
  /** All members in ring order; each sends to the next, the last to the first. */
  readonly members: readonly MemberId[];
  readonly epoch: number;
  /** Queues a frame to a member, and returns before that member handles it. The payload is a view of the data being reduced. */
  send(to: MemberId, header: FrameHeader, payload: Uint8Array<ArrayBuffer>): void;
  /** Resolves when everything queued to a member is sent, or can't be any more: Link.drained. */
  drained(to: MemberId): Promise<void>;
  /** The most bytes in a chunk, a multiple of 4; the same on all members. */
  readonly chunkBytes?: number;
  /** How long an operation may go without a chunk from the left neighbour. */
  readonly timeoutMilliseconds?: number;
  /** The most bytes kept of operations that this member hasn't started yet; what two steps move is ample. */
  readonly earlyBytes?: number;
  readonly clock?: Clock;
}

/** Names an operation; all members must use the same tags. The steps of a channel grow. */
export interface OperationTag {
  /** The training step, or a sequence number. */
  readonly step: number;
  /** Tells apart what runs at once in a step. */
  readonly channel: number;
}

/**
 * The members of one generation in a ring, and the collectives that run on it, any number at once.
 * One that fails leaves the others alone; `abort` ends them all and the ring with them.
 */
export class Ring {
  readonly rank: number;
  readonly worldSize: number;
  readonly epoch: number;
  /** Chunks that were dropped because they belong to another epoch or to an operation that failed here. */
  ignored = 0;
  readonly #options: RingOptions;
  readonly #left: MemberId;
  readonly #right: MemberId;
  readonly #clock: Clock;
  readonly #active = new Map<string, Operation>();
  /** Of each channel, the latest step that was started here. */
  readonly #latest = new Map<number, { step: number; failed: boolean }>();
  readonly #early = new Map<string, Frame[]>();
  #earlyBytes = 0;
  #aborted: string | null = null;

  constructor(options: RingOptions) {
    const rank = options.members.indexOf(options.self);
    if (rank < 0) throw new RangeError(`Member ${shortId(options.self)} isn't one of the ring's members.`);
    if (new Set(options.members).size !== options.members.length)
      throw new RangeError("A ring's members must all be different.");
    const worldSize = options.members.length;
    this.rank = rank;
    this.worldSize = worldSize;
    this.epoch = options.epoch;
    this.#options = options;
    this.#left = options.members[(rank + worldSize - 1) % worldSize]!;
    this.#right = options.members[(rank + 1) % worldSize]!;
    this.#clock = options.clock ?? realClock;
  }

  /** Why the ring takes no more operations; null while it does. */
  get aborted(): string | null {
    return this.#aborted;
  }

  /** Bytes of chunks that came before their operation was started here. */
  get earlyBytes(): number {
    return this.#earlyBytes;
  }

  /**
   * Sums `data` over all members, in place. All members end with the same bits. The data must be left alone until wait() settles.
   * @param data the same length on all members; any length.
   */
  allReduce(data: Float32Array<ArrayBuffer>, tag: OperationTag): Work {
    return this.#start(new RingAllReduce(data, this.rank, this.worldSize, this.#chunkBytes), tag);
  }

  /**
   * Copies `data` of the member with rank `root` to all others.
   * @param data the same length on all members; any length.
   */
  broadcast(data: Float32Array<ArrayBuffer>, root: number, tag: OperationTag): Work {
    return this.#start(new RingBroadcast(data, this.rank, this.worldSize, root, this.#chunkBytes), tag);
  }

  get #chunkBytes(): number {
    return this.#options.chunkBytes ?? defaultChunkBytes;
  }

  #start(state: RingCollective, tag: OperationTag): Work {
    const latest = this.#latest.get(tag.channel);
    if (latest !== undefined && tag.step <= latest.step)
      throw new RangeError(
        `${state.name} of step ${tag.step}, channel ${tag.channel}: step ${latest.step} of that channel was started before.`,
      );
    const header = { kind: "chunk", epoch: this.epoch, step: tag.step, channel: tag.channel } as const;
    const operation: Operation = new Operation({
      state,
      tag,
      left: this.#left,
      clock: this.#clock,
      timeoutMilliseconds: this.#options.timeoutMilliseconds ?? 30_000,
      send: (offset, payload) => this.#options.send(this.#right, { ...header, offset }, payload),
      drained: () => (this.worldSize === 1 ? Promise.resolve() : this.#options.drained(this.#right)),
      ended: (failed) => {
        this.#active.delete(keyOf(tag));
        const current = this.#latest.get(tag.channel);
        if (current !== undefined && current.step === tag.step) current.failed = failed;
      },
    });
    this.#latest.set(tag.channel, { step: tag.step, failed: false });
    this.#active.set(keyOf(tag), operation);
    if (this.#aborted !== null) {
      operation.abort(this.#aborted);
      return operation;
    }
    operation.start();
    const early = this.#early.get(keyOf(tag)) ?? [];
    this.#early.delete(keyOf(tag));
    for (const frame of early) this.#earlyBytes -= frame.payload.length + earlyOverheadBytes;
    for (const frame of early) this.receive(this.#left, frame);
    return operation;
  }

  /** Takes in a frame of kind "chunk". Whatever is wrong with it fails the operation it names, or the ring when it names none. */
  receive(from: MemberId, frame: Frame): void {
    if (frame.epoch !== this.epoch || this.#aborted !== null) {
      this.ignored += 1;
      return;
    }
    const where = `Member ${shortId(from)}, step ${frame.step}, channel ${frame.channel}`;
    const operation = this.#active.get(keyOf(frame));
    if (from !== this.#left || this.worldSize === 1) {
      const expected =
        this.worldSize === 1 ? "none, as this member is alone" : `one from the left neighbour ${shortId(this.#left)}`;
      const sentence = `${where}: got a chunk from a member at another place in the ring, expected ${expected}.`;
      if (operation !== undefined) operation.abort(sentence);
      else this.abort(sentence);
      return;
    }
    if (operation !== undefined) {
      const problem = operation.receive(frame);
      if (problem !== null) operation.abort(`${where}: ${problem}.`);
      return;
    }
    const latest = this.#latest.get(frame.channel);
    if (latest !== undefined && frame.step <= latest.step) {
      if (latest.failed) this.ignored += 1;
      else
        this.abort(
          `${where}: got ${frame.payload.length} bytes at offset ${frame.offset}, expected nothing more, as that operation is complete.`,
        );
      return;
    }
    this.#keep(frame, where);
  }

  /** Ends all operations and the ring. */
  abort(reason: string): void {
    if (this.#aborted !== null) return;
    this.#aborted = reason;
    this.#early.clear();
    this.#earlyBytes = 0;
    for (const operation of [...this.#active.values()]) operation.abort(reason);
  }

  #keep(frame: Frame, where: string): void {
    const limit = this.#options.earlyBytes ?? 64 * 1024 * 1024;
    this.#earlyBytes += frame.payload.length + earlyOverheadBytes;
    if (this.#earlyBytes > limit) {
      this.abort(
        `${where}: got ${this.#earlyBytes} bytes of operations that this member hasn't started, expected at most ${limit}.`,
      );
      return;
    }
    const key = keyOf(frame);
    const frames = this.#early.get(key);
    if (frames === undefined) this.#early.set(key, [frame]);
    else frames.push(frame);
  }
}

interface OperationOptions {
  readonly state: RingCollective;
  readonly tag: OperationTag;
  readonly left: MemberId;
  readonly clock: Clock;
  readonly timeoutMilliseconds: number;
  readonly send: SendChunk;
  readonly drained: () => Promise<void>;
  /** Called once, when no more chunks are wanted. */
  readonly ended: (failed: boolean) => void;
}

class Operation implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  readonly #options: OperationOptions;
  readonly #settled = deferred<void>();
  #timer: TimerHandle | null = null;
  #lastProgress: number;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    this.#lastProgress = options.clock.now();
    // A failure is kept in `exception` too, so one that nobody waits for isn't an unhandled rejection.
    this.#settled.promise.catch(() => {});
  }

  wait(): Promise<void> {
    return this.#settled.promise;
  }

  start(): void {
    this.#watch(this.#options.timeoutMilliseconds);
    this.#options.state.start(this.#options.send);
    if (this.#options.state.done) this.#end();
  }

  receive(frame: Frame): string | null {
    const problem = this.#options.state.receive(frame.offset, frame.payload, this.#options.send);
    if (problem !== null) return problem;
    this.#lastProgress = this.#options.clock.now();
    if (this.#options.state.done) this.#end();
    return null;
  }

  abort(reason: string): void {
    if (this.#ended) return;
    const { state, tag } = this.#options;
    const { step, channel } = tag;
    this.exception = new CollectiveError(`${state.name} of step ${step}, channel ${channel} failed. ${reason}`);
    this.#end();
  }

  /** No more chunks are wanted; settles when the views of the data that are still queued are sent. */
  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#timer !== null) this.#options.clock.clearTimeout(this.#timer);
    this.#options.ended(this.exception !== null);
    this.#options.drained().then(
      () => this.#settle(),
      // The link is gone: nothing of the data is queued any more.
      () => this.#settle(),
    );
  }

  #settle(): void {
    this.isCompleted = true;
    if (this.exception === null) this.#settled.resolve();
    else this.#settled.reject(this.exception);
  }

  #watch(milliseconds: number): void {
    const { clock, timeoutMilliseconds } = this.#options;
    this.#timer = clock.setTimeout(() => {
      const quiet = clock.now() - this.#lastProgress;
      if (quiet < timeoutMilliseconds) {
        this.#watch(timeoutMilliseconds - quiet);
        return;
      }
      const { state, left } = this.#options;
      this.abort(
        `Waited ${(quiet / 1000).toFixed(1)} s for member ${shortId(left)}: ${state.received} of ${state.total} bytes have come.`,
      );
    }, milliseconds);
  }
}

function keyOf(tag: OperationTag): string {
  return `${tag.step}:${tag.channel}`;
}

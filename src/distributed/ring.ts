import type { Clock } from "../base/clock";
import type { Frame, FrameHeader, MemberId } from "../transport/link";
import { shortId } from "../transport/memberId";
import type { Place } from "./algorithms/boundaries";
import { ringAllReduce, ringBroadcast } from "./algorithms/ring";
import { Collective } from "./collective";
import { Elements, elementTypes } from "./elementType";
import { defaultChunkBytes, Exchange, type OperationTag } from "./exchange";
import { type Reduction, reductionOf } from "./reduction";
import type { Schedule } from "./schedule";
import type { Work } from "./work";

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

/**
 * The members of one generation in a ring, and the collectives that a training job runs on it, any number at once. Members send to their right
 * neighbours only. One operation that fails leaves the others alone; `abort` ends them all and the ring with them.
 */
export class Ring {
  readonly rank: number;
  readonly worldSize: number;
  readonly epoch: number;
  readonly #members: readonly MemberId[];
  readonly #ranks: ReadonlyMap<MemberId, number>;
  readonly #place: Place;
  readonly #chunkBytes: number;
  readonly #exchange: Exchange;
  readonly #sum: Reduction;

  constructor(options: RingOptions) {
    const { self, members, epoch, timeoutMilliseconds = 30_000 } = options;
    const rank = members.indexOf(self);
    if (rank < 0) throw new RangeError(`Member ${shortId(self)} isn't one of the ring's members.`);
    if (new Set(members).size !== members.length) throw new RangeError("A ring's members must all be different.");
    const worldSize = members.length;
    this.rank = rank;
    this.worldSize = worldSize;
    this.epoch = epoch;
    this.#members = members;
    this.#ranks = new Map(members.map((member, index) => [member, index]));
    this.#place = { rank, worldSize };
    this.#chunkBytes = options.chunkBytes ?? defaultChunkBytes;
    this.#sum = reductionOf("sum", elementTypes.float32, worldSize);
    this.#exchange = new Exchange({
      rank,
      worldSize,
      epoch,
      isSigned: false,
      nameOf: (other) => `member ${shortId(members[other]!)}`,
      send: (to, header, payload) => options.send(members[to]!, header, payload),
      drained: (to) => options.drained(members[to]!),
      timeoutMilliseconds,
      ...(options.earlyBytes === undefined ? {} : { earlyBytes: options.earlyBytes }),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    });
  }

  /** Why the ring takes no more operations; null while it does. */
  get aborted(): string | null {
    return this.#exchange.aborted;
  }

  /** Chunks that were dropped because they belong to another epoch or to an operation that failed here. */
  get ignored(): number {
    return this.#exchange.ignored;
  }

  /** Bytes of chunks that came before their operation was started here. */
  get earlyBytes(): number {
    return this.#exchange.earlyBytes;
  }

  /**
   * Sums `data` over all members, in place. All members end with the same bits. The data must be left alone until wait() settles.
   * @param data the same length on all members; any length.
   */
  allReduce(data: Float32Array<ArrayBuffer>, tag: OperationTag): Work {
    return this.#start("All-reduce", data, ringAllReduce(this.#place, data.length), tag);
  }

  /**
   * Copies `data` of the member with rank `root` to all others.
   * @param data the same length on all members; any length.
   */
  broadcast(data: Float32Array<ArrayBuffer>, root: number, tag: OperationTag): Work {
    if (!Number.isInteger(root) || root < 0 || root >= this.worldSize)
      throw new RangeError(`A broadcast got root ${root} in a world of ${this.worldSize}.`);
    return this.#start("Broadcast", data, ringBroadcast(this.#place, root, data.length), tag);
  }

  /** Takes in a frame of kind "chunk". Whatever is wrong with it fails the operation it names, or the ring when it names none. */
  receive(from: MemberId, frame: Frame): void {
    const rank = this.#ranks.get(from) ?? -1;
    const left = (this.rank + this.worldSize - 1) % this.worldSize;
    if (frame.epoch === this.epoch && (this.worldSize === 1 || rank !== left)) {
      const expected =
        this.worldSize === 1
          ? "none, as this member is alone"
          : `one from the left neighbour ${shortId(this.#members[left]!)}`;
      this.abort(
        `Member ${shortId(from)}, step ${frame.step}, channel ${frame.channel}: got a chunk from a member at another place in the ring, expected ${expected}.`,
      );
    } else this.#exchange.receive(rank, frame);
  }

  /** Ends all operations and the ring. */
  abort(reason: string): void {
    this.#exchange.abort(reason);
  }

  #start(name: string, data: Float32Array<ArrayBuffer>, schedule: Schedule, tag: OperationTag): Work {
    const values = new Elements(elementTypes.float32, data);
    const collective = new Collective({
      schedule,
      input: values,
      output: values,
      reduction: this.#sum,
      chunkBytes: this.#chunkBytes,
    });
    return this.#exchange.start(`${name} of step ${tag.step}, channel ${tag.channel}`, collective, tag);
  }
}

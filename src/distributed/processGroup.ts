import { type Clock, realClock } from "../base/clock";
import { deferred } from "../base/deferred";
import { Tensor } from "../tensor";
import type { Frame, Link, MemberId, Network } from "../transport/link";
import { Mailbox } from "./mailbox";
import { Ring } from "./ring";
import { CollectiveError, type Work } from "./work";

/** float32 values in JavaScript's memory, or a tensor that was made from data (it is read, and written back). */
export type Values = Float32Array<ArrayBuffer> | Tensor;

export type ReduceOp = "sum" | "avg";

export interface ProcessGroupOptions {
  readonly network: Network;
  /** By rank; there is a link to each. */
  readonly members: readonly MemberId[];
  /** How long a collective may go without progress. */
  readonly timeoutMilliseconds?: number;
  readonly clock?: Clock;
}

/** A control frame's step says what it means. */
const leaving = 3;
const noBytes = new Uint8Array(0);

/**
 * Ranks that run the same collectives in the same order, as c10d's process groups. Every collective returns its Work at once, and
 * collectives may overlap: those of one group pair up by the order in which each rank calls them.
 */
export class ProcessGroup {
  readonly rank: number;
  readonly worldSize: number;
  readonly #network: Network;
  readonly #members: readonly MemberId[];
  readonly #ring: Ring;
  readonly #mailbox: Mailbox;
  /** Ranks that left in order; what they had to give has come. */
  readonly #left = new Set<MemberId>();
  #sequence = 0;
  /** Resolves when every collective called so far has started. */
  #started: Promise<void> = Promise.resolve();

  constructor({ network, members, timeoutMilliseconds = 60_000, clock = realClock }: ProcessGroupOptions) {
    const link = (member: MemberId) => network.links.get(member);
    this.#network = network;
    this.#members = members;
    this.#ring = new Ring({
      self: network.self,
      members,
      epoch: 0,
      timeoutMilliseconds,
      clock,
      send: (to, header, payload) => link(to)?.send(header, payload),
      drained: (to) => link(to)?.drained() ?? Promise.resolve(),
    });
    this.rank = this.#ring.rank;
    this.worldSize = this.#ring.worldSize;
    this.#mailbox = new Mailbox({ timeoutMilliseconds, clock });
    for (const [rank, member] of members.entries()) {
      if (member === network.self) continue;
      const own = link(member);
      if (own === undefined) throw new CollectiveError(`Rank ${this.rank} has no link to rank ${rank}.`);
      own.onClose = (reason) => this.#lost(member, reason);
      own.onFrame = (frame) => this.#take(own, frame);
    }
  }

  /** Combines `values` over all ranks, in place; the result's bits are the same on all ranks. */
  allReduce(values: Values, op: ReduceOp = "sum"): Work {
    return this.#collective(async (tag, run) => {
      const data = await read(values);
      await run(() => this.#ring.allReduce(data, tag));
      if (op === "avg")
        for (let index = 0; index < data.length; index += 1) data[index] = data[index]! / this.worldSize;
      write(values, data);
    });
  }

  /** Copies `values` of rank `source` to all ranks. */
  broadcast(values: Values, source: number): Work {
    return this.#collective(async (tag, run) => {
      const data = await read(values);
      await run(() => this.#ring.broadcast(data, source, tag));
      if (this.rank !== source) write(values, data);
    });
  }

  /** Completes once every rank has called it. */
  barrier(): Work {
    return this.allReduce(new Float32Array(1));
  }

  /**
   * Sends `values` to a rank, which receives them by `recv` with the same tag and length. Completes when they are with the network.
   * @param tag tells apart what two ranks send each other; an integer from 0.
   */
  send(values: Values, destination: number, tag = 0): Work {
    const peer = this.#peer(destination, "send");
    return new GroupWork(async (started) => {
      const data = await read(values);
      await started(this.#mailbox.send(this.#linkTo(peer, destination), data, tag));
    });
  }

  /** Receives into `values` what rank `source` sends with this tag. */
  recv(values: Values, source: number, tag = 0): Work {
    const peer = this.#peer(source, "recv");
    return new GroupWork(async (started) => {
      const data = await read(values);
      await started(this.#mailbox.receive(peer, `rank ${source}`, data, tag));
      write(values, data);
    });
  }

  /** Ends every collective under way here, and the group. */
  abort(reason: string): void {
    this.#ring.abort(reason);
    this.#mailbox.abort(reason);
  }

  /** Leaves the group. What this rank sent is still delivered; the others can't run further collectives. */
  destroy(): void {
    for (const link of this.#network.links.values())
      link.send({ kind: "control", epoch: 0, step: leaving, channel: 0, offset: 0 }, noBytes);
    this.#network.close(`Rank ${this.rank} left the process group.`);
    this.abort("The process group was destroyed.");
  }

  #collective(
    body: (
      tag: { readonly step: number; readonly channel: number },
      run: (start: () => Work) => Promise<void>,
    ) => Promise<void>,
  ): Work {
    const tag = { step: this.#sequence++, channel: 0 };
    const previous = this.#started;
    const own = deferred<void>();
    this.#started = own.promise;
    return new GroupWork(async (started) => {
      try {
        await body(tag, async (start) => {
          // A tensor's values take a while to read; what was called later starts later all the same.
          await previous;
          const [gone] = this.#left;
          if (gone !== undefined)
            throw new CollectiveError(`Rank ${this.#members.indexOf(gone)} left the process group.`);
          const work = start();
          own.resolve();
          await started(work);
        });
      } finally {
        own.resolve();
      }
    });
  }

  #peer(rank: number, operation: string): MemberId {
    const peer = this.#members[rank];
    if (peer === undefined || rank === this.rank)
      throw new RangeError(`${operation}: rank ${rank} isn't another rank of a world of ${this.worldSize}.`);
    return peer;
  }

  #linkTo(peer: MemberId, rank: number): Link {
    const link = this.#network.links.get(peer);
    if (link === undefined) throw new CollectiveError(`Rank ${rank} is gone.`);
    return link;
  }

  #take(link: Link, frame: Frame): void {
    switch (frame.kind) {
      case "chunk":
        this.#ring.receive(link.peer, frame);
        return;
      case "state": {
        const problem = this.#mailbox.take(link.peer, frame);
        if (problem !== null) this.abort(`Rank ${this.#members.indexOf(link.peer)}: ${problem}`);
        return;
      }
      case "control":
        if (frame.step === leaving) this.#left.add(link.peer);
        return;
      case "heartbeat":
      case "signal":
    }
  }

  #lost(member: MemberId, reason: string): void {
    const rank = this.#members.indexOf(member);
    const sentence = `Rank ${rank} is gone. ${reason}`;
    this.#mailbox.lost(member, sentence);
    // One that left in order has sent all that the others' last collectives need, so they may end.
    const isNeeded = rank === (this.rank + this.worldSize - 1) % this.worldSize;
    if (!this.#left.has(member) || isNeeded) this.#ring.abort(sentence);
  }
}

/** A Work made of several parts, one of which may be under way. */
class GroupWork implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  readonly #result: Promise<void>;
  #part: Work | null = null;
  #aborted: string | null = null;

  constructor(body: (started: (part: Work) => Promise<void>) => Promise<void>) {
    this.#result = body((part) => {
      this.#part = part;
      if (this.#aborted !== null) part.abort(this.#aborted);
      return part.wait();
    }).then(
      () => {
        this.isCompleted = true;
      },
      (error: unknown) => {
        this.isCompleted = true;
        this.exception =
          error instanceof CollectiveError
            ? error
            : new CollectiveError(error instanceof Error ? error.message : String(error), { cause: error });
        throw this.exception;
      },
    );
    // A failure is kept in `exception` too, so one that nobody waits for isn't an unhandled rejection.
    this.#result.catch(() => {});
  }

  wait(): Promise<void> {
    return this.#result;
  }

  abort(reason: string): void {
    this.#aborted = reason;
    this.#part?.abort(reason);
  }
}

async function read(values: Values): Promise<Float32Array<ArrayBuffer>> {
  if (!(values instanceof Tensor)) return values;
  const data = await values.data();
  if (!(data instanceof Float32Array))
    throw new TypeError(`Collectives take float32 values; this tensor is ${values}.`);
  return new Float32Array(data);
}

function write(values: Values, data: Float32Array<ArrayBuffer>): void {
  if (values instanceof Tensor) values.write(data);
}

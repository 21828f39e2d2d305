import type { Clock } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import type { Frame, FrameHeader, Link, MemberId, Network } from "../transport/link";
import { FlightRecorder } from "./flightRecorder";
import { Mailbox } from "./mailbox";
import { Store } from "./store";
import { CollectiveError } from "./work";

export interface WorldConnection {
  readonly network: Network;
  /** By rank; there is a link to each. */
  readonly members: readonly MemberId[];
  readonly timeoutMilliseconds: number;
  readonly chunkBytes: number;
  readonly clock: Clock;
}

/** A group's end of the links. Ranks are those of the whole world. */
export interface GroupPort {
  take(from: number, frame: Frame): void;
  /** @param isOrderly whether it said that it leaves, after all it had to send. */
  lost(rank: number, sentence: string, isOrderly: boolean): void;
  /** This rank leaves. */
  end(reason: string): void;
}

/** What a control frame says, in its step. The first two belong to the forming of the world. */
export const notice = { leaving: 3, failed: 4, differs: 5, where: 6, here: 7, broken: 8 } as const;

/** Why nothing works on a group after its end. */
export const destroyed = "The process group was destroyed.";
const noBytes = new Uint8Array(0);
/** The most kept of groups that this rank hasn't made yet. */
const earlyLimits = { frames: 4096, bytes: 64 * 1024 * 1024 };

/** All ranks with the links between them, which the groups share: frames name their group, and go there. */
export class World {
  readonly rank: number;
  readonly worldSize: number;
  readonly clock: Clock;
  readonly timeoutMilliseconds: number;
  readonly chunkBytes: number;
  readonly mailbox: Mailbox;
  readonly recorder: FlightRecorder;
  readonly store: Store;
  readonly #network: Network;
  readonly #members: readonly MemberId[];
  readonly #groups = new Map<number, GroupPort>();
  readonly #early = new Map<number, { readonly from: number; readonly frame: Frame }[]>();
  #earlyFrames = 0;
  #earlyBytes = 0;
  /** Ranks that said that they leave. */
  readonly #leaving = new Set<number>();
  /** Why there is no link to a rank any more. */
  readonly #gone = new Map<number, string>();
  readonly #losses: readonly Deferred<string>[];
  #groupCount = 0;

  constructor({ network, members, timeoutMilliseconds, chunkBytes, clock }: WorldConnection) {
    this.#network = network;
    this.#members = members;
    this.clock = clock;
    this.timeoutMilliseconds = timeoutMilliseconds;
    this.chunkBytes = chunkBytes;
    this.rank = members.indexOf(network.self);
    if (this.rank < 0) throw new RangeError("This member isn't one of the process group's members.");
    this.worldSize = members.length;
    this.#losses = members.map(() => deferred<string>());
    this.mailbox = new Mailbox({ timeoutMilliseconds, clock });
    this.recorder = new FlightRecorder(clock);
    this.store = new Store(this);
  }

  /** Begins to listen; groups of the world's own making are there by then. */
  listen(): void {
    for (const [rank, member] of this.#members.entries()) {
      if (rank === this.rank) continue;
      const link = this.#network.links.get(member);
      if (link === undefined) throw new CollectiveError(`Rank ${this.rank} has no link to rank ${rank}.`);
      link.onClose = (reason) => this.#lost(rank, reason);
      link.onFrame = (frame) => this.#take(rank, link, frame);
    }
  }

  /** The number of the next group, which all ranks make in the same order. */
  nextGroup(): number {
    return this.#groupCount++;
  }

  addGroup(id: number, port: GroupPort): void {
    this.#groups.set(id, port);
    for (const [rank, sentence] of this.#gone) port.lost(rank, sentence, this.#leaving.has(rank));
    const early = this.#early.get(id) ?? [];
    this.#early.delete(id);
    for (const { from, frame } of early) {
      this.#earlyFrames -= 1;
      this.#earlyBytes -= frame.payload.length;
      port.take(from, frame);
    }
  }

  removeGroup(id: number): void {
    this.#groups.delete(id);
  }

  hasLeft(rank: number): boolean {
    return this.#leaving.has(rank);
  }

  /** @throws CollectiveError when the rank is gone. */
  linkTo(rank: number): Link {
    const link = this.#network.links.get(this.#members[rank]!);
    if (link === undefined) throw new CollectiveError(this.#gone.get(rank) ?? `Rank ${rank} is gone.`);
    return link;
  }

  isLinked(rank: number): boolean {
    return this.#network.links.has(this.#members[rank]!);
  }

  /** Resolves with a sentence when there is no link to the rank any more. */
  whenLost(rank: number): Promise<string> {
    return this.#losses[rank]!.promise;
  }

  /** Queues a frame to a rank; one that is gone gets nothing more. */
  send(to: number, header: FrameHeader, payload: Uint8Array<ArrayBuffer>): void {
    this.#network.links.get(this.#members[to]!)?.send(header, payload);
  }

  drained(to: number): Promise<void> {
    return this.#network.links.get(this.#members[to]!)?.drained() ?? Promise.resolve();
  }

  /** What this rank sent is still delivered. */
  leave(): void {
    for (const link of this.#network.links.values())
      link.send({ kind: "control", epoch: 0, step: notice.leaving, channel: 0, offset: 0 }, noBytes);
    this.mailbox.abort(destroyed);
    for (const port of [...this.#groups.values()]) port.end(destroyed);
    this.#network.close(`Rank ${this.rank} left the process group.`);
  }

  #take(from: number, link: Link, frame: Frame): void {
    switch (frame.kind) {
      case "state": {
        const problem = this.mailbox.take(from, frame);
        if (problem !== null) link.close(`Rank ${from} was dropped. ${problem}`);
        return;
      }
      case "control":
        if (frame.epoch === 0 && frame.step === notice.leaving) this.#leaving.add(from);
        else this.#hand(from, link, frame);
        return;
      case "chunk":
        this.#hand(from, link, frame);
        return;
      case "heartbeat":
      case "signal":
    }
  }

  #hand(from: number, link: Link, frame: Frame): void {
    const port = this.#groups.get(frame.epoch);
    if (port !== undefined) {
      port.take(from, frame);
      return;
    }
    // A group that was there and isn't any more wants nothing.
    if (frame.epoch < this.#groupCount) return;
    this.#earlyFrames += 1;
    this.#earlyBytes += frame.payload.length;
    if (this.#earlyFrames > earlyLimits.frames || this.#earlyBytes > earlyLimits.bytes) {
      link.close(
        `Rank ${from} was dropped. It sent ${this.#earlyFrames} frames with ${this.#earlyBytes} bytes to groups that this rank hasn't made.`,
      );
      return;
    }
    const frames = this.#early.get(frame.epoch) ?? [];
    frames.push({ from, frame });
    this.#early.set(frame.epoch, frames);
  }

  #lost(rank: number, reason: string): void {
    const sentence = `Rank ${rank} is gone. ${reason}`;
    this.#gone.set(rank, sentence);
    this.#losses[rank]!.resolve(sentence);
    this.mailbox.lost(rank, sentence);
    for (const port of [...this.#groups.values()]) port.lost(rank, sentence, this.#leaving.has(rank));
  }
}

import { deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import type { Frame } from "../transport/link";
import type { Place } from "./algorithms/boundaries";
import { Collective, type CollectiveOptions } from "./collective";
import { Exchange } from "./exchange";
import type { FlightRecord } from "./flightRecorder";
import { GroupWork } from "./groupWork";
import type { Operation } from "./operation";
import { CollectiveError, type Work } from "./work";
import { notice, type World } from "./world";

/** A collective as a group runs it. */
export interface Step extends Omit<CollectiveOptions, "chunkBytes"> {
  /** What must be the same on all ranks, after the collective's name: such as "(sum) of float32[8]". */
  readonly detail: string;
}

/** Runs a step of a collective. */
export type Run = (step: Step) => Promise<void>;

/** How long others may take to say where they stand, when something has timed out. */
const answerMilliseconds = 1000;
/** What fits a control frame. */
const noticeBytes = 4096;

/**
 * The collectives of one group: numbered in the order in which each rank calls them, and compared by signature. Whatever fails one on one rank
 * fails it on all, with the same sentence.
 */
export class GroupExchange {
  readonly place: Place;
  readonly #world: World;
  readonly #id: number;
  /** The group's ranks in the world. */
  readonly #ranks: readonly number[];
  readonly #exchange: Exchange;
  readonly #records = new WeakMap<Operation, FlightRecord>();
  /** By sequence number: what others answered, and whom to tell of an answer. */
  readonly #answers = new Map<number, { readonly texts: Map<number, string>; readonly arrived: () => void }>();
  #sequence = 0;
  /** Resolves when every collective called so far has started. */
  #started: Promise<void> = Promise.resolve();

  constructor(world: World, id: number, ranks: readonly number[]) {
    const rank = ranks.indexOf(world.rank);
    this.place = { rank, worldSize: ranks.length };
    this.#world = world;
    this.#id = id;
    this.#ranks = ranks;
    this.#exchange = new Exchange({
      rank,
      worldSize: ranks.length,
      epoch: id,
      isSigned: true,
      nameOf: (other) => `rank ${ranks[other]}`,
      send: (to, header, payload) => world.send(ranks[to]!, header, payload),
      drained: (to) => world.drained(ranks[to]!),
      timeoutMilliseconds: world.timeoutMilliseconds,
      clock: world.clock,
      onFailed: (operation, step) => this.#failed(operation, step),
      onAborted: (reason) => this.#tellAll(notice.broken, 0, `Rank ${world.rank} says: ${reason}`),
      onDiffers: (from, step) => this.#differs(from, step),
      explain: (_, step) => this.#explain(step),
    });
    world.addGroup(id, {
      take: (from, frame) => this.#take(from, frame),
      lost: (lostRank, sentence, isOrderly) => this.#lost(lostRank, sentence, isOrderly),
      end: (reason) => this.end(reason),
    });
  }

  /**
   * @param count how many steps the body runs; all are numbered now, so that collectives called later come later.
   */
  collective(name: string, count: number, body: (run: Run) => Promise<void>): Work {
    const first = this.#sequence;
    this.#sequence += count;
    const previous = this.#started;
    const own = deferred<void>();
    this.#started = own.promise;
    const records = Array.from({ length: count }, (_, index) =>
      this.#world.recorder.add(this.#id, first + index, name),
    );
    let next = 0;
    return new GroupWork(`Rank ${this.#world.rank}: ${name} #${first}`, async (started) => {
      try {
        await body(async (step) => {
          // A tensor's values take a while to read; what was called later starts later all the same.
          await previous;
          this.#checkPresence();
          const index = next++;
          const operation = this.#start(name, first + index, records[index]!, step);
          if (next === count) own.resolve();
          await started(operation);
        });
      } catch (error) {
        await previous;
        // The others must not wait for what won't begin here.
        for (; next < count; next += 1) this.#refuse(first + next, records[next]!, messageOf(error));
        throw error;
      } finally {
        own.resolve();
      }
    });
  }

  /** Ends every collective under way, and the group, on all ranks. */
  abort(reason: string): void {
    this.#exchange.abort(reason);
  }

  /** Ends the group here. The others go on as far as they can. */
  end(reason: string): void {
    this.#exchange.abort(reason, true);
  }

  #start(name: string, sequence: number, record: FlightRecord, { detail, ...options }: Step): Operation {
    record.description = `${name} ${detail} by ${options.schedule.algorithm}`;
    const title = `Rank ${this.#world.rank}: ${name} #${sequence} ${detail}`;
    const collective = new Collective({ ...options, chunkBytes: this.#world.chunkBytes });
    this.#world.recorder.update(record, "running");
    const operation = this.#exchange.start(title, collective, {
      step: sequence,
      channel: hash(`${record.description}\n${this.#ranks}\n${this.#world.chunkBytes}`),
    });
    this.#records.set(operation, record);
    if (!collective.done && operation.exception === null)
      record.progress = () => ({
        waitingFor: collective.waitingFor.map((rank) => this.#ranks[rank]!),
        received: collective.received,
        total: collective.total,
        since: operation.lastProgress,
      });
    operation.wait().then(
      () => this.#world.recorder.update(record, "done"),
      () => this.#world.recorder.update(record, "failed"),
    );
    return operation;
  }

  #refuse(sequence: number, record: FlightRecord, sentence: string): void {
    this.#world.recorder.update(record, "failed");
    this.#exchange.refuse(sequence);
    this.#tellAll(notice.failed, sequence, `Rank ${this.#world.rank} says: ${sentence}`);
  }

  #checkPresence(): void {
    const gone = this.#ranks.find((rank) => this.#world.hasLeft(rank));
    if (gone !== undefined) throw new CollectiveError(`Rank ${gone} left the process group.`);
  }

  #failed(operation: Operation, step: number): void {
    if (!operation.isToldByOthers)
      this.#tellAll(notice.failed, step, `Rank ${this.#world.rank} says: ${operation.reason}`);
  }

  /** `from` does something else: it can say what both do. */
  #differs(from: number, step: number): void {
    const record = this.#world.recorder.find(this.#id, step);
    if (record !== null) this.#tell(this.#ranks[from]!, notice.differs, step, record.description);
  }

  #take(from: number, frame: Frame): void {
    const rank = this.#ranks.indexOf(from);
    if (rank < 0) return;
    if (frame.kind === "chunk") {
      this.#exchange.receive(rank, frame);
      return;
    }
    const text = new TextDecoder().decode(frame.payload);
    const sequence = frame.channel;
    switch (frame.step) {
      case notice.failed:
        this.#exchange.fail(sequence, text);
        return;
      case notice.broken:
        this.#exchange.abort(text, true);
        return;
      case notice.differs: {
        const record = this.#world.recorder.find(this.#id, sequence);
        if (record === null) return;
        const both = [
          { rank: from, what: text },
          { rank: this.#world.rank, what: record.description },
        ].toSorted((a, b) => a.rank - b.rank);
        const sentence = `Rank ${both[0]!.rank} called ${both[0]!.what}, and rank ${both[1]!.rank} called ${both[1]!.what}.`;
        this.#exchange.fail(sequence, sentence);
        this.#tellAll(notice.failed, sequence, sentence);
        return;
      }
      case notice.where:
        this.#tell(from, notice.here, sequence, this.#world.recorder.whereabouts(this.#id, sequence));
        return;
      case notice.here:
        this.#answers.get(sequence)?.texts.set(from, text);
        this.#answers.get(sequence)?.arrived();
    }
  }

  #lost(rank: number, sentence: string, isOrderly: boolean): void {
    const place = this.#ranks.indexOf(rank);
    if (place < 0) return;
    // One that left in order has sent all that the others' last collectives need, so they may end.
    if (isOrderly) this.#exchange.lost(place, sentence);
    else this.#exchange.abort(sentence);
  }

  /** Asks everyone where they stand: who waits for whom, since when. */
  async #explain(sequence: number): Promise<string> {
    const texts = new Map<number, string>();
    const { clock, rank: self, recorder } = this.#world;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, answerMilliseconds);
      const arrived = () => {
        if (texts.size < this.#ranks.length - 1) return;
        clock.clearTimeout(timer);
        resolve();
      };
      this.#answers.set(sequence, { texts, arrived });
      this.#tellAll(notice.where, sequence, "");
    });
    this.#answers.delete(sequence);
    const lines = this.#ranks.map((rank) => {
      const answer = rank === self ? recorder.whereabouts(this.#id, sequence) : texts.get(rank);
      return `\n  rank ${rank}: ${answer ?? "doesn't answer"}`;
    });
    return lines.join("");
  }

  #tellAll(step: number, sequence: number, text: string): void {
    for (const rank of this.#ranks) if (rank !== this.#world.rank) this.#tell(rank, step, sequence, text);
  }

  #tell(rank: number, step: number, sequence: number, text: string): void {
    const payload = new Uint8Array(new TextEncoder().encode(text).subarray(0, noticeBytes));
    this.#world.send(rank, { kind: "control", epoch: this.#id, step, channel: sequence, offset: 0 }, payload);
  }
}

/** 32-bit FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

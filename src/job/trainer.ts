import type { Clock } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import type { Ring } from "../distributed/ring";
import { OffloadedOptimizer } from "../optim/offloaded";
import type { AuditEntry, AuditLog } from "./auditLog";
import { allFinite, type GradientSlot, makeSlot, reduceAll } from "./gradientSlot";
import type { History } from "./history";
import { RunningMedian } from "./medians";
import type { Standing } from "./membershipEvents";
import type { Generation, StateKind } from "./messages";
import { type LocalResult, metricSlotCount, metricSlots, type Replica, type TrainingState } from "./replica";
import { Sampler } from "./sampler";
import { type Share, shareOut } from "./shares";
import type { StepTiming } from "./snapshot";
import type { Manifest } from "./spec";
import type { TransferContents } from "./stateTransfer";

/** Steps of a lone member on their way through its GPU. */
const localStepsInFlight = 4;
/** Weights are compared among the members after every so many steps, and at the end. */
const hashEvery = 100;
/** So many skipped steps in a row pause the job. */
export const skipsUntilPause = 3;

export interface TrainerOptions {
  readonly manifest: Manifest;
  readonly replica: Replica;
  readonly clock: Clock;
  readonly history: History;
  readonly audit: AuditLog;
  readonly sha256: (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;
  /** False for one that is to receive its state from others. */
  readonly begins: boolean;
  /** A step is committed; `committed` counts them. */
  readonly onCommitted: (committed: number) => void;
  /** An all-reduce failed: nothing moves until the next generation. */
  readonly onFailed: (epoch: number, sentence: string) => void;
  /** The model can't be computed here any more. */
  readonly onBroken: (sentence: string) => void;
  /** So many steps in a row were skipped because of gradients that aren't finite. */
  readonly onSkipped: (inARow: number) => void;
  readonly onHashed: (step: number, hash: string) => void;
}

/** A generation as it runs here. */
interface Session {
  readonly generation: Generation;
  readonly rank: number;
  readonly share: Share;
  /** Null for a lone member. */
  readonly ring: Ring | null;
  /** No step from this one on is started. */
  holdAt: number;
  /** Nothing that this session still computes may be committed. */
  ended: boolean;
  /** Resolves when no step is under way. */
  readonly rest: Deferred<void>;
}

interface LocalStep {
  readonly step: number;
  readonly samples: Uint32Array<ArrayBuffer>;
  readonly result: Promise<LocalResult>;
}

/**
 * Trains one replica as the generations say. Alone, everything stays on the GPU; in a ring the optimizer runs here on the
 * CPU over the reduced gradients, and the weights are uploaded. A step is committed in the moment all its buckets are
 * reduced, in one go with the optimizer's step.
 */
export class Trainer {
  readonly #options: TrainerOptions;
  readonly #replica: Replica;
  readonly #elements: number;
  readonly #sampler: Sampler;
  readonly #history: History;
  readonly #weights: Float32Array<ArrayBuffer>;
  readonly #optimizer: OffloadedOptimizer;
  readonly #slots: [GradientSlot, GradientSlot];
  /** This member's own gradients, kept apart so that a step can be retried. */
  readonly #own: Float32Array<ArrayBuffer>;
  #ownOf: (AuditEntry & { readonly share: Share }) | null = null;
  /** Where weights and optimizer state are up to date. */
  #home: "gpu" | "cpu" | "nowhere";
  /** The GPU's weights are behind the CPU's. */
  #uploadDue = false;
  #committed: number;
  #skips = 0;
  /** The epoch of the latest validation. */
  #validatedIn = -1;
  #session: Session | null = null;
  /** Calls of the replica must not overlap: each waits for the one before. */
  #tail: Promise<void> = Promise.resolve();
  /** What others want of the replica, done between two steps. */
  readonly #errands: (() => Promise<void>)[] = [];
  readonly #inFlight: LocalStep[] = [];
  #lastLocal = 0;
  #computing = false;
  readonly #speed = new RunningMedian(15);
  readonly #timing = {
    compute: new RunningMedian(15),
    wire: new RunningMedian(15),
    optimizer: new RunningMedian(15),
    total: new RunningMedian(15),
  };

  constructor(options: TrainerOptions) {
    const { manifest, replica } = options;
    if (replica.layout.length !== manifest.elements)
      throw new Error(
        `The model here has ${replica.layout.length} weights and the job's has ${manifest.elements}: reload the page.`,
      );
    this.#options = options;
    this.#replica = replica;
    this.#elements = manifest.elements;
    this.#sampler = new Sampler(manifest.spec.seed, replica.sampleCount, manifest.spec.batch);
    this.#history = options.history;
    this.#weights = new Float32Array(manifest.elements);
    this.#optimizer = new OffloadedOptimizer(manifest.spec.optimizer, manifest.elements);
    const length = manifest.elements + metricSlotCount;
    this.#slots = [makeSlot(new Float32Array(length)), makeSlot(new Float32Array(length))];
    this.#own = new Float32Array(length);
    this.#home = options.begins ? "gpu" : "nowhere";
    this.#committed = options.begins ? 0 : -1;
  }

  /** Committed steps; -1 before there is any state. */
  get committed(): number {
    return this.#committed;
  }
  get samplesPerSecond(): number {
    return this.#speed.value;
  }
  get speedSteps(): number {
    return this.#speed.count;
  }
  get timing(): StepTiming {
    const { compute, wire, optimizer, total } = this.#timing;
    return { compute: compute.value, wire: wire.value, optimizer: optimizer.value, total: total.value };
  }
  /** All steps are done, the last validation included. */
  get finished(): boolean {
    const { steps } = this.#options.manifest.spec;
    return this.#committed >= steps && this.#history.validated >= steps;
  }

  /** Begins or goes on as the generation says. The ring is null for a lone member. */
  adopt(generation: Generation, rank: number, ring: Ring | null): void {
    this.#end("The members regroup.");
    const { from, count } = generation.members[rank]!;
    const session: Session = {
      generation,
      rank,
      share: { from, count },
      ring,
      holdAt: Number.POSITIVE_INFINITY,
      ended: false,
      rest: deferred(),
    };
    this.#session = session;
    this.#tail = this.#tail.then(() => this.#run(session));
  }

  /**
   * Stands still before step `boundary` (0: at once) and tells how far this member is. After that nothing is committed
   * until the next generation, save by what is served.
   */
  async hold(boundary: number, reason: string): Promise<Standing> {
    const session = this.#session;
    if (session !== null) {
      session.holdAt = Math.min(session.holdAt, boundary);
      if (session.ring === null) session.holdAt = 0;
      else if (this.#committed >= boundary) this.#end(reason);
      await session.rest.promise;
    }
    return {
      committed: this.#committed,
      buckets: this.#heldBuckets() !== null,
      validated: this.#history.validated,
      computing: this.#computing,
      samplesPerSecond: this.#speed.value,
    };
  }

  /** Resolves when nothing uses the replica any more, if nothing new is asked. */
  idle(): Promise<void> {
    return this.#tail;
  }

  /** Ends what is under way without another generation. */
  stop(reason: string): void {
    this.#end(reason);
    this.#session = null;
  }

  /** What another member lacks, as a copy. Only while this one stands still. */
  async pack(what: StateKind, elapsedMilliseconds: number): Promise<TransferContents> {
    const common = { what, committed: this.#committed, skips: this.#skips, elapsedMilliseconds, lossesFrom: 0 };
    switch (what) {
      case "buckets": {
        const held = this.#heldBuckets();
        if (held === null) throw new Error(`The reduced gradients of step ${this.#committed - 1} aren't held here.`);
        return { ...common, optimizerSteps: 0, losses: [], validations: [], arrays: [held] };
      }
      case "training": {
        await this.#errand(() => this.#moveToCpu());
        const { losses, validations } = this.#history;
        const arrays = [this.#weights, ...this.#optimizer.state()];
        return { ...common, optimizerSteps: this.#optimizer.steps, losses, validations, arrays };
      }
      case "history": {
        const { losses, validations } = this.#history;
        return { ...common, optimizerSteps: 0, losses, validations, arrays: [] };
      }
    }
  }

  /** Takes in what another member served. @returns a sentence when it is of no use here. */
  take(contents: TransferContents): string | null {
    const [first, ...state] = contents.arrays;
    if (first === undefined) return "A transfer without arrays changes nothing.";
    switch (contents.what) {
      case "buckets": {
        const step = contents.committed - 1;
        if (this.#home !== "cpu" || this.#committed !== step)
          return `The reduced gradients of step ${step} came, and this member has committed ${this.#committed} steps.`;
        // The old slot may still be waiting to be sent in parts, so it is let go instead of overwritten.
        const slot = makeSlot(Float32Array.from(first));
        this.#slots[step & 1] = slot;
        this.#commit(slot, step, this.#session?.generation.members.length ?? 1, null);
        return null;
      }
      case "training":
        this.#weights.set(first);
        this.#optimizer.loadState(state, contents.optimizerSteps);
        this.#history.take(contents.lossesFrom, contents.losses, contents.validations);
        this.#skips = contents.skips;
        this.#committed = contents.committed;
        this.#home = "cpu";
        this.#uploadDue = true;
        this.#ownOf = null;
        for (const slot of this.#slots) slot.reducedStep = -1;
        return null;
      case "history":
        return "A member keeps its own history.";
    }
  }

  /** The weights and the optimizer's state between two steps, as copies. */
  async state(): Promise<TrainingState> {
    let state: TrainingState | null = null;
    await this.#errand(async () => {
      state =
        this.#home === "gpu"
          ? await this.#replica.readState()
          : {
              weights: this.#weights.slice(),
              optimizer: this.#optimizer.state().map((array) => Float32Array.from(array)),
              optimizerSteps: this.#optimizer.steps,
            };
    });
    if (state === null) throw new Error("The training's state couldn't be read.");
    return state;
  }

  /** Runs something with the replica between two steps. */
  async withReplica<Result>(use: (replica: Replica) => Promise<Result>): Promise<Result> {
    const result = deferred<Result>();
    await this.#errand(async () => {
      if (this.#uploadDue) this.#upload();
      result.resolve(await use(this.#replica));
    });
    return result.promise;
  }

  async #run(session: Session): Promise<void> {
    try {
      if (!session.ended) {
        if (session.ring === null) await this.#moveToGpu();
        else await this.#moveToCpu();
        if (this.#uploadDue) this.#upload();
        if (session.generation.validate) await this.#validateIfDue(session);
        while (this.#mayStep(session)) {
          if (session.ring === null) await this.#localStep();
          else await this.#ringStep(session, session.ring);
          await this.#runErrands();
          await this.#validateIfDue(session);
        }
        await this.#drainLocalSteps();
        await this.#validateIfDue(session);
      }
    } catch (error) {
      this.#onError(session, error);
    } finally {
      session.rest.resolve();
      await this.#runErrands();
    }
  }

  #mayStep(session: Session): boolean {
    const next = this.#committed + this.#inFlight.length;
    return (
      !session.ended &&
      session.generation.run.kind === "training" &&
      next < session.holdAt &&
      next < this.#options.manifest.spec.steps
    );
  }

  #onError(session: Session, error: unknown): void {
    const sentence = messageOf(error);
    this.#inFlight.length = 0;
    this.#computing = false;
    if (session.ended) return;
    if (session.ring !== null && session.ring.aborted !== null) {
      this.#options.onFailed(session.generation.epoch, session.ring.aborted);
      return;
    }
    session.ring?.abort(sentence);
    this.#options.onBroken(sentence);
  }

  async #localStep(): Promise<void> {
    const { batch, optimizer } = this.#options.manifest.spec;
    const step = this.#committed + this.#inFlight.length;
    if (this.#inFlight.length === 0) this.#lastLocal = this.#options.clock.now();
    const samples = this.#sampler.indices(step, 0, batch);
    this.#computing = true;
    const result = this.#replica.localStep(samples, batch, optimizer.learningRate);
    // Awaited later: until then a failure is nobody's.
    result.catch(() => {});
    this.#inFlight.push({ step, samples, result });
    if (this.#inFlight.length >= localStepsInFlight || this.#validationDueAt(step + 1)) {
      const count = this.#validationDueAt(step + 1) ? this.#inFlight.length : 1;
      for (let index = 0; index < count; index += 1) await this.#finishLocalStep();
    }
  }

  async #finishLocalStep(): Promise<void> {
    const local = this.#inFlight[0];
    if (local === undefined) return;
    const { sums, applied } = await local.result;
    this.#inFlight.shift();
    // Those behind a step that is skipped weren't applied either: they are taken again.
    if (!applied) await Promise.all(this.#inFlight.splice(0).map(({ result }) => result));
    this.#computing = this.#inFlight.length > 0;
    const now = this.#options.clock.now();
    const milliseconds = now - this.#lastLocal;
    this.#lastLocal = now;
    this.#measure(local.samples.length, milliseconds, 0, 0, milliseconds);
    this.#options.audit.record(local.step, 0, local.samples);
    this.#finishStep(local.step, sums, 0, 1, milliseconds, applied);
  }

  async #drainLocalSteps(): Promise<void> {
    while (this.#inFlight.length > 0) await this.#finishLocalStep();
  }

  async #ringStep(session: Session, ring: Ring): Promise<void> {
    const { clock } = this.#options;
    const step = this.#committed;
    const begin = clock.now();
    const compute = await this.#computeOwn(session, step);
    if (session.ended) return;
    const slot = this.#slots[step & 1]!;
    slot.reducedStep = -1;
    slot.values.set(this.#own);
    const wireBegin = clock.now();
    await reduceAll(
      ring,
      slot.buckets.map((bucket, channel) => ring.allReduce(bucket, { step, channel })),
    );
    // Ended while the last chunk was on its way through here: what was reported then must stay true.
    if (session.ended) return;
    const wireEnd = clock.now();
    this.#commit(slot, step, session.generation.members.length, wireEnd - begin);
    this.#upload();
    const end = clock.now();
    this.#measure(session.share.count, compute, wireEnd - wireBegin, end - wireEnd, end - begin);
  }

  /** @returns how long it took, in milliseconds; 0 when the gradients were there from an attempt before. */
  async #computeOwn(session: Session, step: number): Promise<number> {
    const { clock, manifest } = this.#options;
    const { from, count } = session.share;
    const own = this.#ownOf;
    if (own !== null && own.step === step && own.share.from === from && own.share.count === count) return 0;
    this.#ownOf = null;
    const begin = clock.now();
    const samples = this.#sampler.indices(step, from, count);
    await this.#onGpu(this.#replica.gradients(samples, manifest.spec.batch, this.#own));
    this.#ownOf = { step, rank: session.rank, samples, share: session.share };
    return clock.now() - begin;
  }

  /** Applies the reduced gradients of `step`: from here on it is committed. */
  #commit(slot: GradientSlot, step: number, members: number, milliseconds: number | null): void {
    const { spec } = this.#options.manifest;
    const finite = allFinite(slot.values);
    if (finite) this.#optimizer.step(this.#weights, slot.values, spec.optimizer.learningRate);
    this.#uploadDue = true;
    slot.reducedStep = step;
    const own = this.#ownOf;
    if (own !== null && own.step === step) this.#options.audit.record(step, own.rank, own.samples);
    this.#finishStep(step, slot.values, this.#elements, members, milliseconds, finite);
  }

  #finishStep(
    step: number,
    sums: Float32Array,
    at: number,
    members: number,
    milliseconds: number | null,
    finite: boolean,
  ): void {
    const loss = sums[at + metricSlots.loss]! / sums[at + metricSlots.samples]!;
    this.#history.commit(step, loss, members, milliseconds);
    this.#committed = step + 1;
    this.#skips = finite ? 0 : this.#skips + 1;
    const { steps } = this.#options.manifest.spec;
    if (this.#home === "cpu" && (this.#committed % hashEvery === 0 || this.#committed === steps)) this.#hash();
    this.#options.onCommitted(this.#committed);
    if (this.#skips > 0) this.#options.onSkipped(this.#skips);
  }

  #hash(): void {
    const step = this.#committed;
    this.#options.sha256(new Uint8Array(this.#weights.buffer)).then(
      (hash) => this.#options.onHashed(step, hash),
      (error: unknown) => this.#options.onBroken(`The weights couldn't be hashed. ${String(error)}`),
    );
  }

  #validationDueAt(committed: number): boolean {
    const { steps, validateEvery } = this.#options.manifest.spec;
    return committed > 0 && (committed === steps || (validateEvery > 0 && committed % validateEvery === 0));
  }

  /** Shares the validation set out among the members, as the batch is, and sums up. */
  async #validateIfDue(session: Session): Promise<void> {
    const step = this.#committed;
    const again = session.generation.validate && session.generation.startStep === step;
    if (session.ended || this.#inFlight.length > 0 || !this.#validationDueAt(step)) return;
    // At a boundary the validation is left to the next generation, so that nobody waits for one who stands still.
    if (step >= session.holdAt || (this.#history.validated >= step && !again)) return;
    if (again && this.#validatedIn === session.generation.epoch) return;
    const { ring, generation, rank } = session;
    const slices = shareOut(
      this.#replica.validationCount,
      generation.members.map(({ count }) => count),
      1,
    );
    const { from, count } = slices[rank]!;
    const part = await this.#onGpu(this.#replica.evaluate(from, from + count));
    if (session.ended) return;
    const sums = Float32Array.of(part.loss * part.count, part.correct, part.count);
    if (ring !== null) await reduceAll(ring, [ring.allReduce(sums, { step, channel: this.#slots[0].buckets.length })]);
    if (session.ended) return;
    this.#validatedIn = generation.epoch;
    this.#history.validate({ step, loss: sums[0]! / sums[2]!, accuracy: sums[1]! / sums[2]! });
  }

  /** After growing from one: the GPU's weights and optimizer state become the CPU's. */
  async #moveToCpu(): Promise<void> {
    if (this.#home !== "gpu") return;
    const { weights, optimizer, optimizerSteps } = await this.#onGpu(this.#replica.readState());
    this.#weights.set(weights);
    this.#optimizer.loadState(optimizer, optimizerSteps);
    this.#home = "cpu";
  }

  /** After shrinking to one. */
  async #moveToGpu(): Promise<void> {
    if (this.#home !== "cpu") return;
    this.#replica.writeState({
      weights: this.#weights,
      optimizer: this.#optimizer.state().map((array) => Float32Array.from(array)),
      optimizerSteps: this.#optimizer.steps,
    });
    this.#home = "gpu";
    this.#uploadDue = false;
    for (const slot of this.#slots) slot.reducedStep = -1;
  }

  /** Notes that the GPU is at work, for those that wait. */
  async #onGpu<Result>(work: Promise<Result>): Promise<Result> {
    this.#computing = true;
    try {
      return await work;
    } finally {
      this.#computing = false;
    }
  }

  #upload(): void {
    this.#replica.writeWeights(this.#weights);
    this.#uploadDue = false;
  }

  #heldBuckets(): Float32Array<ArrayBuffer> | null {
    const step = this.#committed - 1;
    const slot = this.#slots[step & 1];
    return step >= 0 && slot !== undefined && slot.reducedStep === step ? slot.values : null;
  }

  /** Ends the session under way; its buffers are free once its part of #tail is over. */
  #end(reason: string): void {
    const session = this.#session;
    if (session === null || session.ended) return;
    session.ended = true;
    session.ring?.abort(reason);
    if (session.ring !== null) session.rest.resolve();
  }

  #measure(samples: number, compute: number, wire: number, optimizer: number, total: number): void {
    // Gradients kept from an attempt before say nothing about speed.
    if (compute > 0 && samples > 0) this.#speed.add((1000 * samples) / compute);
    this.#timing.compute.add(compute);
    this.#timing.wire.add(wire);
    this.#timing.optimizer.add(optimizer);
    this.#timing.total.add(total);
  }

  /** Between two steps of a running session, or at once when none runs. */
  #errand(run: () => Promise<void>): Promise<void> {
    const done = deferred<void>();
    this.#errands.push(() => run().then(done.resolve, (error) => done.reject(error)));
    this.#tail = this.#tail.then(() => this.#runErrands());
    return done.promise;
  }

  async #runErrands(): Promise<void> {
    if (this.#errands.length === 0) return;
    await this.#drainLocalSteps();
    for (let errand = this.#errands.shift(); errand !== undefined; errand = this.#errands.shift()) await errand();
  }
}

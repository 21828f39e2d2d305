import { equalBytes } from "../base/bytes";
import { type Clock, realClock, type TimerHandle } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import { Ring } from "../distributed/ring";
import type { Frame, FrameHeader, Link, MemberId, Network } from "../transport/link";
import { shortId } from "../transport/memberId";
import { AuditLog } from "./auditLog";
import { trainingRun } from "./coordinator";
import { History } from "./history";
import { manifestHash, sha256 as subtleSha256 } from "./manifest";
import { Membership } from "./membership";
import type { Effect, MembershipEvent, TimerName } from "./membershipEvents";
import {
  type ControlMessage,
  decodeMessage,
  encodeMessage,
  type Generation,
  type MessageOf,
  maxLossesInStatus,
  type RunState,
  type StateKind,
  type Status,
} from "./messages";
import type { Evaluation, Prediction, Replica, TrainingState } from "./replica";
import type { JobAuditLine, JobResult } from "./result";
import { shareOut } from "./shares";
import type { GpuDescription, JobPhase, JobSnapshot, MemberView, Notice } from "./snapshot";
import type { Manifest } from "./spec";
import type { TransferContents } from "./stateTransfer";
import { ByteMeter, nobody, noTiming, type Person, StatusBoard } from "./statusBoard";
import { skipsUntilPause, Trainer } from "./trainer";
import { Transfers } from "./transfers";

/** How often members and watchers hear of each other, in milliseconds. */
const statusEvery = 250;
/** How often rates of bytes are taken. */
const ratesEvery = 1000;
/** How long a first contact may take to tell what the job is. */
const welcomeTimeout = 8_000;
/** How long pause, resume and stop may take to be agreed on. */
const commandTimeout = 45_000;
/** How long an all-reduce may go without a byte. */
const ringTimeout = 30_000;
const noticesKept = 100;
/** New shares need so many measured steps, and must make a step faster by this part of it. */
const rebalanceAfter = 15;
const rebalanceGain = 0.15;

export type OnProgress = (what: string, loaded: number, total: number) => void;

interface CommonOptions {
  readonly network: Network;
  readonly name: string;
  readonly gpu: GpuDescription;
  /** Loads data and model; called once, when this tab is to train. */
  readonly makeReplica: (manifest: Manifest, onProgress: OnProgress) => Promise<Replica>;
  readonly clock?: Clock;
  /** SHA-256 in lower-case hex; the bytes may change once this has been called. */
  readonly sha256?: (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;
  readonly ringTimeoutMilliseconds?: number;
}

export interface CreateOptions extends CommonOptions {
  readonly manifest: Manifest;
  /** Training begins when so many members are in; 1, which is the default, at once. */
  readonly waitFor?: number;
}

export interface WatchOptions extends CommonOptions {
  readonly firstLink: Link;
  /** SHA-256 of the manifest, as the first link's peer proved it. */
  readonly manifestHash: Uint8Array;
}

/** This tab's part in a job, from the first link to the end: watching, training, leaving, coming back. */
export class JobMember {
  /** Called when there is something new to show; a snapshot tells what. */
  onChange: (() => void) | null = null;
  /** For the first member: resolves when training begins, rejects with a sentence when it can't. */
  started: Promise<void> = Promise.resolve();
  readonly manifest: Manifest;
  readonly #options: CommonOptions;
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #sha256: (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;
  readonly #membership: Membership;
  readonly #history = new History();
  readonly #audit = new AuditLog();
  readonly #board = new StatusBoard();
  readonly #meter: ByteMeter;
  readonly #transfers: Transfers;
  readonly #links = new Map<MemberId, Link>();
  readonly #people = new Map<MemberId, Person & { readonly member: boolean }>();
  readonly #timers = new Map<TimerName, TimerHandle>();
  #statusTimer: TimerHandle | null = null;
  #nextRates = 0;
  readonly #events: MembershipEvent[] = [];
  #dispatching = false;
  #replica: Replica | null = null;
  #trainer: Trainer | null = null;
  #ring: Ring | null = null;
  /** Chunks of a generation that others adopted before this member did. */
  #early: { readonly from: MemberId; readonly frame: Frame }[] = [];
  #earlyBytes = 0;
  #notices: Notice[] = [];
  #phase: JobPhase = { kind: "connecting" };
  #regroupReason: string | null = null;
  #joined: Deferred<void> | null = null;
  #left: Deferred<void> | null = null;
  #runWaiters: { readonly kind: RunState["kind"]; readonly done: Deferred<void>; readonly timer: TimerHandle }[] = [];
  #closed = false;
  /** Of elapsed time: what is past, and since when more passes (null: stands still). */
  #elapsedBefore = 0;
  #elapsedSince: number | null = null;
  /** Losses below this went out in a status already. */
  #lossesTold = 0;
  #historyAskedAt = Number.NEGATIVE_INFINITY;

  private constructor(options: CommonOptions, manifest: Manifest) {
    this.#options = options;
    this.manifest = manifest;
    this.#network = options.network;
    this.#clock = options.clock ?? realClock;
    this.#sha256 = options.sha256 ?? subtleSha256;
    this.#meter = new ByteMeter(this.#clock);
    this.#membership = new Membership({
      self: options.network.self,
      batch: manifest.spec.batch,
      steps: manifest.spec.steps,
      nameOf: (member) => this.#nameOf(member),
    });
    this.#transfers = new Transfers({
      manifest,
      sha256: this.#sha256,
      sendOffer: (link, offer) => this.#send(link.peer, offer),
      onReceived: (from, epoch, contents) => this.#take(from, epoch, contents),
      onBad: (from, sentence) => this.#dropPeer(from, sentence),
    });
  }

  /** Begins to listen. `early`: frames of the first link that came before there was a member to take them. */
  #open(first: Link | null, early: readonly Frame[]): void {
    this.#network.onRefused = (sentence) => this.#notice("warning", sentence);
    this.#network.onLink = (link) => this.#attach(link, []);
    if (first !== null) this.#attach(first, early);
    for (const link of this.#network.links.values()) this.#attach(link, []);
    this.#statusTimer = this.#clock.setTimeout(() => this.#tick(), statusEvery);
  }

  /**
   * The first member: makes the replica, then trains. Resolves at once; `started` tells how it went.
   * A snapshot's phase is "preparing" until then.
   */
  static create(options: CreateOptions): JobMember {
    const { manifest, waitFor = 1 } = options;
    const member = new JobMember(options, manifest);
    const run: RunState =
      waitFor > 1
        ? { kind: "paused", by: options.name, reason: `Training begins with ${waitFor} members.`, until: waitFor }
        : trainingRun;
    member.#open(null, []);
    member.started = member.#prepare(true).then(() => member.#dispatch({ kind: "create", run }));
    // A rejection that nobody waits for is shown as the phase.
    member.started.catch(() => {});
    return member;
  }

  /**
   * One that opened a link: resolves when the job is known, and watches it.
   * Rejects with a sentence when the first contact doesn't tell what the job is, or tells another than it proved.
   */
  static async watch(options: WatchOptions): Promise<JobMember> {
    const { firstLink, manifestHash: proven } = options;
    const clock = options.clock ?? realClock;
    const early: Frame[] = [];
    const welcome = deferred<MessageOf<"welcome">>();
    const timer = clock.setTimeout(
      () =>
        welcome.reject(new Error(`The first contact didn't say within ${welcomeTimeout / 1000} s what the job is.`)),
      welcomeTimeout,
    );
    firstLink.onClose = (reason) => welcome.reject(new Error(reason));
    firstLink.onFrame = (frame) => {
      early.push(frame);
      if (frame.kind !== "control") return;
      try {
        const message = decodeMessage(frame.payload);
        if (message.kind === "welcome") {
          // Whatever comes from here on waits in the link for its next handler.
          firstLink.onFrame = null;
          welcome.resolve(message);
        }
      } catch (error) {
        welcome.reject(error instanceof Error ? error : new Error(String(error)));
      }
    };
    sendControl(firstLink, 0, { kind: "hello", name: options.name.slice(0, 64), gpu: options.gpu, member: false });
    try {
      const { manifest } = await welcome.promise;
      if (!equalBytes(await manifestHash(manifest, options.sha256 ?? subtleSha256), proven))
        throw new Error("The first contact told of another job than the one that it proved to be in.");
      const member = new JobMember(options, manifest);
      member.#phase = { kind: "watching" };
      member.#open(firstLink, early);
      return member;
    } catch (error) {
      firstLink.close("This tab couldn't learn what the job is.");
      throw error;
    } finally {
      clock.clearTimeout(timer);
    }
  }

  /** From watching to training; resolves when this tab is in the ring. */
  async join(): Promise<void> {
    this.#mustBeOpen();
    if (this.#membership.role !== "watching" || this.#joined !== null)
      throw new Error("This tab is in the ring already, or on its way.");
    const joined = deferred<void>();
    this.#joined = joined;
    joined.promise.catch(() => {});
    try {
      await this.#prepare(false);
    } catch (error) {
      this.#joined = null;
      throw error;
    }
    this.#setPhase({ kind: "joining" });
    this.#dispatch({ kind: "join" });
    await joined.promise;
  }

  /** Resolves when this tab is out of the ring; it goes on watching. */
  async leave(): Promise<void> {
    if (this.#membership.role === "watching") return;
    const left = this.#left ?? deferred<void>();
    this.#left = left;
    this.#dispatch({ kind: "leave" });
    await left.promise;
  }

  pause(reason = ""): Promise<void> {
    return this.#command({ kind: "paused", by: this.#name, reason: reason.slice(0, 500), until: 0 });
  }
  resume(): Promise<void> {
    return this.#command({ ...trainingRun, by: this.#name });
  }
  stop(): Promise<void> {
    return this.#command({ kind: "stopped", by: this.#name, reason: "", until: 0 });
  }

  /** Says goodbye and closes all links. */
  close(reason = "This tab was closed."): void {
    if (this.#closed) return;
    this.#dispatch({ kind: "goodbye" });
    this.#closed = true;
    if (this.#statusTimer !== null) this.#clock.clearTimeout(this.#statusTimer);
    for (const timer of this.#timers.values()) this.#clock.clearTimeout(timer);
    this.#timers.clear();
    for (const { done, timer } of this.#runWaiters) {
      this.#clock.clearTimeout(timer);
      done.reject(new Error(reason));
    }
    this.#runWaiters = [];
    this.#trainer?.stop(reason);
    const replica = this.#replica;
    this.#replica = null;
    const idle = this.#trainer?.idle() ?? Promise.resolve();
    if (replica !== null) void idle.then(() => replica.destroy());
    this.#network.close(reason);
  }

  snapshot(lossesFrom: number): JobSnapshot {
    const from = Math.min(Math.max(0, lossesFrom), this.#history.losses.length);
    const status = this.#board.status;
    const timing = this.#trainer !== null && this.#isMember ? this.#trainer.timing : (status?.timing ?? noTiming);
    return {
      job: this.manifest.job,
      maker: this.manifest.maker,
      spec: this.manifest.spec,
      phase: this.#currentPhase(),
      step: this.#step,
      lossesFrom: from,
      losses: this.#history.losses.slice(from),
      validations: [...this.#history.validations],
      members: this.#memberViews(),
      watchers: this.#watchers,
      samplesPerSecond: this.#samplesPerSecond,
      timing,
      elapsedMilliseconds: this.#elapsed,
      remainingMilliseconds: this.#remaining,
      notices: this.#notices,
    };
  }

  /** Weights and optimizer state, as copies. Rejects for one that has none. */
  async state(): Promise<TrainingState> {
    return this.#mustTrain().state();
  }

  /** step, loss, validation loss, validation accuracy, members, milliseconds; empty where this tab doesn't know. */
  metricsCsv(): string {
    return this.#history.csv();
  }

  async result(): Promise<JobResult> {
    const trainer = this.#trainer;
    const hash =
      trainer === null || trainer.committed < 0
        ? ""
        : await this.#sha256(new Uint8Array((await trainer.state()).weights.buffer));
    return {
      spec: this.manifest.spec,
      steps: this.#step,
      losses: [...this.#history.losses],
      validation: this.#history.validations[this.#history.validations.length - 1] ?? null,
      samplesPerSecond: this.#samplesPerSecond,
      stepMilliseconds: this.#history.stepMilliseconds,
      self: {
        id: this.#network.self,
        rank: this.#rank,
        weightsHash: hash,
        bytesSent: this.#meter.sent,
        bytesReceived: this.#meter.received,
        gradientBytesSent: this.#meter.gradientsSent,
        gradientBytesReceived: this.#meter.gradientsReceived,
        samples: this.#audit.samples,
      },
    };
  }

  /** One line for each committed step that this member computed a part of, with exactly the samples it computed. */
  audit(): readonly JobAuditLine[] {
    return this.#audit.entries.map(({ step, rank, samples }) => ({
      step,
      member: this.#network.self,
      rank,
      samples: [...samples],
    }));
  }

  /** Loss and accuracy over validation samples [from, to), with the weights as they are between two steps. */
  async evaluate(from: number, to: number): Promise<Evaluation> {
    return this.#mustTrain().withReplica((replica) => replica.evaluate(from, to));
  }

  async predictions(indices: readonly number[]): Promise<readonly Prediction[]> {
    return this.#mustTrain().withReplica((replica) => replica.predict(indices));
  }

  get validationCount(): number {
    return this.#replica?.validationCount ?? 0;
  }

  // ---- links and frames

  #attach(link: Link, early: readonly Frame[]): void {
    if (this.#closed || this.#links.get(link.peer) === link) return;
    this.#links.set(link.peer, link);
    this.#meter.add(link.counters);
    link.onClose = (reason) => {
      this.#meter.remove(link.counters);
      if (this.#links.get(link.peer) !== link) return;
      this.#links.delete(link.peer);
      this.#transfers.forget(link.peer);
      this.#board.forget(link.peer);
      this.#dispatch({ kind: "unlinked", peer: link.peer, reason });
      this.#checkAlone();
      this.#changed();
    };
    this.#sayHello(link.peer);
    for (const frame of early) this.#onFrame(link, frame);
    link.onFrame = (frame) => this.#onFrame(link, frame);
    if (this.#links.get(link.peer) === link) this.#dispatch({ kind: "linked", peer: link.peer });
  }

  #sayHello(to: MemberId): void {
    this.#send(to, { kind: "hello", name: this.#name, gpu: this.#options.gpu, member: this.#isMember });
  }

  #onFrame(link: Link, frame: Frame): void {
    const from = link.peer;
    if (this.#closed || this.#links.get(from) !== link) return;
    switch (frame.kind) {
      case "control":
        try {
          this.#onMessage(from, decodeMessage(frame.payload));
        } catch (error) {
          this.#dropPeer(from, error instanceof Error ? error.message : String(error));
        }
        break;
      case "chunk":
        this.#onChunk(from, frame);
        break;
      case "state":
        this.#transfers.receive(from, frame);
        break;
      case "heartbeat":
      case "signal":
        this.#dropPeer(from, `It sent a frame of kind ${frame.kind} to the job, which belongs to the link.`);
        break;
    }
  }

  #onChunk(from: MemberId, frame: Frame): void {
    const generation = this.#membership.generation;
    if (generation !== null && frame.epoch < generation.epoch) return;
    if (generation !== null && frame.epoch === generation.epoch) {
      this.#meter.gradientsReceived += frame.payload.length;
      this.#ring?.receive(from, frame);
      return;
    }
    // Whoever is about to adopt that generation keeps the chunk until then; for anyone else it is of no use.
    if (this.#membership.roundEpoch === null || frame.epoch < this.#membership.roundEpoch) return;
    this.#earlyBytes += frame.payload.length + 64;
    if (this.#earlyBytes > 16 * this.manifest.elements + 2 ** 20) {
      this.#dropPeer(from, "It sent more gradients of a ring to come than any step has.");
      return;
    }
    this.#early.push({ from, frame });
  }

  #onMessage(from: MemberId, message: ControlMessage): void {
    switch (message.kind) {
      case "hello":
        this.#people.set(from, { name: message.name, gpu: message.gpu, member: message.member });
        if (!message.member && this.#isMember) this.#welcome(from);
        this.#changed();
        break;
      case "welcome":
        this.#dispatch({ kind: "view", epoch: message.epoch, members: message.members, from });
        break;
      case "telemetry":
        this.#board.tell(from, message);
        if (message.weights !== null) this.#compareWeights(message.weights.step, from, message.weights.hash);
        break;
      case "status":
        this.#onStatus(from, message);
        break;
      case "history":
        void this.#sendHistory(from);
        break;
      case "offer":
        this.#transfers.offered(from, message);
        break;
      case "notice":
        this.#notice(message.level, message.sentence);
        break;
      default:
        this.#dispatch({ kind: "message", from, message });
    }
  }

  #dropPeer(peer: MemberId, sentence: string): void {
    const whole = `${this.#nameOf(peer)} is dropped: ${sentence}`;
    this.#notice("error", whole);
    this.#links.get(peer)?.close(whole);
  }

  #send(to: MemberId, message: ControlMessage): void {
    const link = this.#links.get(to);
    if (link !== undefined) sendControl(link, this.#membership.epoch, message);
  }

  // ---- the state machine and its effects

  /** Events that come up while effects are carried out wait for their turn. */
  #dispatch(event: MembershipEvent): void {
    if (this.#closed) return;
    this.#events.push(event);
    if (this.#dispatching) return;
    this.#dispatching = true;
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift())
        for (const effect of this.#membership.handle(next)) this.#carryOut(effect);
    } finally {
      this.#dispatching = false;
    }
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case "send":
        this.#send(effect.to, effect.message);
        break;
      case "dial":
        this.#network.dial(effect.peer, effect.via).then(
          (link) => {
            this.#attach(link, []);
            this.#dispatch({ kind: "dialled", peer: effect.peer, problem: null });
          },
          (error: unknown) => {
            const problem = (error instanceof Error ? error.message : String(error)).slice(0, 500);
            this.#dispatch({ kind: "dialled", peer: effect.peer, problem });
          },
        );
        break;
      case "close":
        this.#links.get(effect.peer)?.close(effect.reason);
        break;
      case "setTimer":
        this.#clearTimer(effect.timer);
        this.#timers.set(
          effect.timer,
          this.#clock.setTimeout(() => {
            this.#timers.delete(effect.timer);
            this.#dispatch({ kind: "timer", timer: effect.timer });
          }, effect.milliseconds),
        );
        break;
      case "clearTimer":
        this.#clearTimer(effect.timer);
        break;
      case "hold":
        void this.#hold(effect.epoch, effect.boundary, effect.reason);
        break;
      case "serve":
        void this.#serve(effect.epoch, effect.to, effect.what);
        break;
      case "adopt":
        this.#adopt(effect.generation);
        break;
      case "released":
        this.#released(effect.problem);
        break;
      case "declined": {
        this.#notice("warning", effect.sentence);
        this.#setPhase({ kind: "watching" });
        const joined = this.#joined;
        this.#joined = null;
        joined?.reject(new Error(effect.sentence));
        break;
      }
      case "notice":
        this.#notice(effect.level, effect.sentence);
        this.#toAll({ kind: "notice", level: effect.level, sentence: effect.sentence.slice(0, 500) });
        break;
    }
  }

  #clearTimer(timer: TimerName): void {
    const handle = this.#timers.get(timer);
    if (handle !== undefined) this.#clock.clearTimeout(handle);
    this.#timers.delete(timer);
  }

  async #hold(epoch: number, boundary: number, reason: string): Promise<void> {
    const trainer = this.#trainer;
    if (trainer === null) return;
    if (boundary === 0) this.#setRegrouping(reason);
    const standing = await trainer.hold(boundary, reason);
    if (this.#membership.roundEpoch !== epoch) return;
    this.#setRegrouping(reason);
    this.#dispatch({ kind: "held", epoch, standing });
  }

  async #serve(epoch: number, to: MemberId, what: StateKind): Promise<void> {
    const link = this.#links.get(to);
    const trainer = this.#trainer;
    if (link === undefined || trainer === null) return;
    try {
      const contents = await trainer.pack(what, this.#elapsed);
      if (this.#membership.roundEpoch === epoch) await this.#transfers.send(link, epoch, contents);
    } catch (error) {
      this.#break(`The training's state couldn't be sent. ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #take(from: MemberId, epoch: number, contents: TransferContents): void {
    if (contents.what === "history") {
      if (this.#isMember) return;
      this.#history.take(contents.lossesFrom, contents.losses, contents.validations);
      this.#changed();
      return;
    }
    if (this.#membership.roundEpoch !== epoch || this.#trainer === null) return;
    const problem = this.#trainer.take(contents);
    if (problem !== null) {
      this.#dropPeer(from, problem);
      return;
    }
    if (contents.what === "training") {
      this.#elapsedBefore = contents.elapsedMilliseconds;
      this.#elapsedSince = null;
    }
    this.#dispatch({ kind: "synced", epoch, committed: contents.committed });
  }

  #adopt(generation: Generation): void {
    const trainer = this.#trainer;
    if (trainer === null) return;
    const members = generation.members.map(({ id }) => id);
    const self = this.#network.self;
    this.#ring?.abort("A new ring was formed.");
    this.#ring =
      members.length === 1
        ? null
        : new Ring({
            self,
            members,
            epoch: generation.epoch,
            clock: this.#clock,
            timeoutMilliseconds: this.#options.ringTimeoutMilliseconds ?? ringTimeout,
            earlyBytes: 16 * this.manifest.elements + 2 ** 20,
            send: (to, header, payload) => {
              this.#meter.gradientsSent += payload.length;
              this.#links.get(to)?.send(header, payload);
            },
            drained: (to) => this.#links.get(to)?.drained() ?? Promise.resolve(),
          });
    const early = this.#early;
    this.#early = [];
    this.#earlyBytes = 0;
    this.#board.clear();
    this.#regroupReason = null;
    this.#setPhase({ kind: "training" });
    if (this.#elapsedSince === null && generation.run.kind === "training") this.#elapsedSince = this.#clock.now();
    if (generation.run.kind !== "training") this.#stopElapsed();
    trainer.adopt(generation, members.indexOf(self), this.#ring);
    for (const { from, frame } of early) this.#onChunk(from, frame);
    const joined = this.#joined;
    this.#joined = null;
    joined?.resolve();
    this.#settleRunWaiters(generation.run.kind);
    this.#notice("info", generation.reason);
    for (const peer of this.#links.keys()) if (!members.includes(peer)) this.#welcome(peer);
    if (this.#membership.coordinates) this.#broadcastStatus();
  }

  #released(problem: string | null): void {
    this.#ring?.abort("This tab left the ring.");
    this.#ring = null;
    this.#trainer?.stop("This tab left the ring.");
    this.#regroupReason = null;
    this.#stopElapsed();
    if (problem !== null) this.#notice("error", problem);
    this.#setPhase(problem === null ? { kind: "left" } : { kind: "watching" });
    const [joined, left] = [this.#joined, this.#left];
    this.#joined = null;
    this.#left = null;
    joined?.reject(new Error(problem ?? "This tab left before it was in the ring."));
    left?.resolve();
  }

  /** This tab can't train any more: the others go on without it. */
  #break(sentence: string): void {
    if (this.#closed) return;
    this.#notice("error", sentence);
    this.#dispatch({ kind: "goodbye" });
    this.#setPhase({ kind: "failed", message: sentence });
  }

  // ---- preparing and training

  async #prepare(begins: boolean): Promise<void> {
    const before = this.#trainer;
    try {
      if (this.#replica === null) {
        this.#setPhase({ kind: "preparing", what: "the model", loaded: 0, total: 0 });
        const replica = await this.#options.makeReplica(this.manifest, (what, loaded, total) =>
          this.#setPhase({ kind: "preparing", what, loaded, total }),
        );
        this.#mustBeOpen();
        this.#replica = replica;
        void replica.lost.then((sentence) => {
          if (this.#replica !== replica) return;
          this.#replica = null;
          if (!this.#closed) this.#break(`The GPU was lost. ${sentence}`);
        });
      }
      // What a training before still has on the GPU's queue must be over.
      await before?.idle();
      this.#mustBeOpen();
      this.#trainer = this.#makeTrainer(this.#replica, begins);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#setPhase({ kind: "failed", message });
      throw error;
    }
  }

  #makeTrainer(replica: Replica, begins: boolean): Trainer {
    return new Trainer({
      manifest: this.manifest,
      replica,
      begins,
      clock: this.#clock,
      history: this.#history,
      audit: this.#audit,
      sha256: this.#sha256,
      onCommitted: (step) => {
        if (step >= this.manifest.spec.steps) this.#stopElapsed();
        this.#dispatch({ kind: "committed", step });
      },
      onFailed: (epoch, sentence) => {
        this.#setRegrouping(sentence);
        this.#dispatch({ kind: "failed", epoch, sentence });
      },
      onBroken: (sentence) => this.#break(sentence),
      onSkipped: (inARow) => {
        if (inARow % skipsUntilPause !== 0 || !this.#membership.coordinates) return;
        const reason = `The gradients of ${inARow} steps in a row weren't finite numbers; a smaller learning rate may help.`;
        this.#toAll({ kind: "notice", level: "error", sentence: reason });
        this.#notice("error", reason);
        this.#dispatch({ kind: "command", run: { kind: "paused", by: this.#name, reason, until: 0 } });
      },
      onHashed: (step, hash) => {
        if (this.#membership.coordinates) this.#compareWeights(step, this.#network.self, hash);
        else this.#sendTelemetry({ step, hash });
      },
    });
  }

  #command(run: RunState): Promise<void> {
    this.#mustBeOpen();
    if (this.#run?.kind === run.kind && this.#membership.roundEpoch === null) return Promise.resolve();
    if (this.#run?.kind === "stopped") return Promise.reject(new Error(`The job was stopped by ${this.#run.by}.`));
    const done = deferred<void>();
    const timer = this.#clock.setTimeout(() => {
      this.#runWaiters = this.#runWaiters.filter((waiter) => waiter.done !== done);
      done.reject(new Error(`The members didn't agree within ${commandTimeout / 1000} s: try again.`));
    }, commandTimeout);
    this.#runWaiters.push({ kind: run.kind, done, timer });
    this.#dispatch({ kind: "command", run });
    return done.promise;
  }

  #settleRunWaiters(kind: RunState["kind"]): void {
    for (const waiter of this.#runWaiters.filter((candidate) => candidate.kind === kind)) {
      this.#clock.clearTimeout(waiter.timer);
      waiter.done.resolve();
    }
    this.#runWaiters = this.#runWaiters.filter((waiter) => waiter.kind !== kind);
  }

  #compareWeights(step: number, member: MemberId, hash: string): void {
    const generation = this.#membership.generation;
    if (!this.#membership.coordinates || generation === null) return;
    const members = generation.members.map(({ id }) => id);
    const others = this.#board.compareWeights(step, member, hash, members);
    if (others === null) return;
    const names = others.map((id) => this.#nameOf(id)).join(", ");
    const sentence = `After ${step} steps the weights of ${names} differ from those of ${this.#nameOf(members[0]!)}: the replicas have drifted apart, and their tabs should leave and join again.`;
    this.#notice("error", sentence);
    this.#toAll({ kind: "notice", level: "error", sentence: sentence.slice(0, 500) });
  }

  // ---- telling and being told

  #tick(): void {
    if (this.#closed) return;
    this.#statusTimer = this.#clock.setTimeout(() => this.#tick(), statusEvery);
    if (this.#clock.now() >= this.#nextRates) {
      this.#nextRates = this.#clock.now() + ratesEvery;
      this.#meter.measure();
    }
    if (this.#membership.coordinates) {
      this.#broadcastStatus();
      this.#considerRebalance();
    } else if (this.#isMember) this.#sendTelemetry(null);
    this.#changed();
  }

  #sendTelemetry(weights: { readonly step: number; readonly hash: string } | null): void {
    const leader = this.#membership.leader;
    const trainer = this.#trainer;
    if (leader === null || trainer === null) return;
    this.#send(leader, {
      kind: "telemetry",
      // The median of fewer steps is no measure.
      samplesPerSecond: trainer.speedSteps >= rebalanceAfter ? trainer.samplesPerSecond : 0,
      timing: trainer.timing,
      samples: this.#audit.samples,
      bytesInPerSecond: this.#meter.inPerSecond,
      bytesOutPerSecond: this.#meter.outPerSecond,
      weights,
    });
  }

  #broadcastStatus(): void {
    const generation = this.#membership.generation;
    const trainer = this.#trainer;
    if (generation === null || trainer === null) return;
    const { losses, validations } = this.#history;
    const from = Math.min(this.#lossesTold, losses.length);
    const told = losses.slice(from, from + maxLossesInStatus);
    this.#lossesTold = from + told.length;
    const members = this.#memberViews().filter(({ rank }) => rank !== null);
    const status: Status = {
      kind: "status",
      epoch: generation.epoch,
      step: trainer.committed,
      run: generation.run,
      finished: trainer.finished,
      lossesFrom: from,
      losses: told,
      validations: validations.slice(-50),
      members: members.map(({ id, name, gpu, share, samples, bytesInPerSecond, bytesOutPerSecond }) => ({
        id,
        name,
        gpu,
        share,
        samples,
        bytesInPerSecond,
        bytesOutPerSecond,
      })),
      joining: this.#membership.joining,
      watchers: this.#watchers,
      samplesPerSecond: this.#samplesPerSecond,
      timing: trainer.timing,
      elapsedMilliseconds: this.#elapsed,
      remainingMilliseconds: this.#remaining,
    };
    this.#toAll(status);
  }

  #onStatus(from: MemberId, status: Status): void {
    if (status.epoch < this.#membership.epoch && !this.#isMember) return;
    this.#board.status = status;
    if (this.#isMember) {
      this.#lossesTold = status.lossesFrom + status.losses.length;
      return;
    }
    this.#dispatch({ kind: "view", epoch: status.epoch, members: status.members.map(({ id }) => id), from });
    this.#settleRunWaiters(status.run.kind);
    this.#elapsedBefore = status.elapsedMilliseconds;
    const known = this.#history.losses.length;
    const now = this.#clock.now();
    if (status.lossesFrom <= known) this.#history.take(status.lossesFrom, status.losses, status.validations);
    else if (now - this.#historyAskedAt > 3_000) {
      this.#historyAskedAt = now;
      this.#send(from, { kind: "history", from: known });
    }
  }

  async #sendHistory(to: MemberId): Promise<void> {
    const link = this.#links.get(to);
    if (link === undefined || this.#trainer === null || !this.#isMember) return;
    await this.#transfers.send(link, this.#membership.epoch, await this.#trainer.pack("history", this.#elapsed));
  }

  #welcome(to: MemberId): void {
    const generation = this.#membership.generation;
    if (generation === null) return;
    const members = generation.members.map(({ id }) => id);
    this.#send(to, { kind: "welcome", manifest: this.manifest, epoch: generation.epoch, members });
  }

  /** Asks for new shares when the speeds measured promise a faster step. */
  #considerRebalance(): void {
    const generation = this.#membership.generation;
    const trainer = this.#trainer;
    if (generation === null || trainer === null || this.#membership.roundEpoch !== null) return;
    if (generation.members.length < 2 || trainer.speedSteps < rebalanceAfter || trainer.finished) return;
    if (trainer.committed < generation.startStep + rebalanceAfter) return;
    const speeds = generation.members.map(({ id }) =>
      id === this.#network.self ? trainer.samplesPerSecond : (this.#board.of(id)?.samplesPerSecond ?? 0),
    );
    if (speeds.some((speed) => !(speed > 0))) return;
    const slowest = (counts: readonly number[]) => Math.max(...counts.map((count, rank) => count / speeds[rank]!));
    const now = slowest(generation.members.map(({ count }) => count));
    const then = slowest(shareOut(this.manifest.spec.batch, speeds).map(({ count }) => count));
    if (then < now * (1 - rebalanceGain)) this.#dispatch({ kind: "rebalance" });
  }

  #toAll(message: ControlMessage): void {
    for (const peer of this.#links.keys()) this.#send(peer, message);
  }

  #notice(kind: Notice["kind"], text: string): void {
    this.#notices = [...this.#notices, { at: Date.now(), kind, text }].slice(-noticesKept);
    this.#changed();
  }

  /** A watcher that lost its last link has nobody to hear from. */
  #checkAlone(): void {
    if (this.#links.size > 0 || this.#membership.role === "member" || this.#closed) return;
    if (this.#phase.kind === "failed" || this.#phase.kind === "preparing" || this.#run?.kind === "stopped") return;
    if (this.#board.status?.finished || this.#trainer?.finished) return;
    this.#setPhase({ kind: "failed", message: "Nobody runs this job any more, as far as this tab can tell." });
    this.#joined?.reject(new Error("Nobody runs this job any more, as far as this tab can tell."));
    this.#joined = null;
  }

  // ---- what there is to show

  get #isMember(): boolean {
    return this.#membership.role === "member";
  }
  get #name(): string {
    return this.#options.name.slice(0, 64);
  }
  get #rank(): number | null {
    const rank = this.#membership.generation?.members.findIndex(({ id }) => id === this.#network.self) ?? -1;
    return rank < 0 ? null : rank;
  }
  get #run(): RunState | null {
    return this.#membership.generation?.run ?? this.#board.status?.run ?? null;
  }
  get #step(): number {
    if (this.#isMember && this.#trainer !== null) return Math.max(0, this.#trainer.committed);
    return Math.max(this.#board.status?.step ?? 0, this.#trainer?.committed ?? 0);
  }
  get #watchers(): number {
    const generation = this.#membership.generation;
    if (generation === null) return this.#board.status?.watchers ?? 0;
    const members = new Set(generation.members.map(({ id }) => id));
    return [...this.#links.keys()].filter((peer) => !members.has(peer)).length;
  }
  get #samplesPerSecond(): number {
    if (!this.#isMember || this.#trainer === null) return this.#board.status?.samplesPerSecond ?? 0;
    const { total } = this.#trainer.timing;
    return total > 0 ? (1000 * this.manifest.spec.batch) / total : 0;
  }
  get #elapsed(): number {
    return this.#elapsedBefore + (this.#elapsedSince === null ? 0 : this.#clock.now() - this.#elapsedSince);
  }
  get #remaining(): number | null {
    if (!this.#isMember || this.#trainer === null) return this.#board.status?.remainingMilliseconds ?? null;
    const { total } = this.#trainer.timing;
    return total > 0 ? total * (this.manifest.spec.steps - this.#step) : null;
  }

  #stopElapsed(): void {
    this.#elapsedBefore = this.#elapsed;
    this.#elapsedSince = null;
  }

  #setRegrouping(reason: string): void {
    if (this.#regroupReason === reason || !this.#isMember) return;
    this.#regroupReason = reason;
    this.#changed();
  }

  #setPhase(phase: JobPhase): void {
    this.#phase = phase;
    this.#changed();
  }

  #changed(): void {
    this.onChange?.();
  }

  #currentPhase(): JobPhase {
    const own = this.#phase;
    const run = this.#run;
    const finished = this.#isMember ? this.#trainer?.finished : this.#board.status?.finished;
    switch (own.kind) {
      case "training":
        if (run?.kind === "stopped") return { kind: "stopped", by: run.by };
        if (finished) return { kind: "finished" };
        if (this.#regroupReason !== null) return { kind: "regrouping", reason: this.#regroupReason };
        if (run?.kind === "paused") return { kind: "paused", by: run.by, reason: run.reason };
        return own;
      case "watching":
        if (run?.kind === "stopped") return { kind: "stopped", by: run.by };
        return finished ? { kind: "finished" } : own;
      case "connecting":
      case "preparing":
      case "joining":
      case "regrouping":
      case "paused":
      case "finished":
      case "stopped":
      case "left":
      case "failed":
        return own;
    }
  }

  #memberViews(): MemberView[] {
    const { generation } = this.#membership;
    const self = this.#network.self;
    const status = this.#board.status;
    const { batch } = this.manifest.spec;
    const ranked =
      generation !== null
        ? generation.members.map(({ id, count }) => ({ id, share: count / batch }))
        : (status?.members ?? []).filter(({ id }) => id !== self);
    const paused = this.#run?.kind === "paused";
    const views = ranked.map(({ id, share }, rank): MemberView => {
      const lost = generation !== null && id !== self && !this.#links.has(id);
      const told = this.#board.of(id);
      return {
        id,
        ...this.#person(id),
        rank,
        state: lost ? "lost" : paused ? "paused" : "training",
        self: id === self,
        coordinator: rank === 0,
        share,
        samples: id === self ? this.#audit.samples : (told?.samples ?? 0),
        bytesInPerSecond: id === self ? this.#meter.inPerSecond : (told?.bytesInPerSecond ?? 0),
        bytesOutPerSecond: id === self ? this.#meter.outPerSecond : (told?.bytesOutPerSecond ?? 0),
      };
    });
    const joining = new Set(generation !== null ? this.#membership.joining : (status?.joining ?? []));
    if (this.#membership.role === "joining") joining.add(self);
    for (const id of joining) {
      if (ranked.some((member) => member.id === id)) continue;
      views.push({
        id,
        ...this.#person(id),
        rank: null,
        state: "joining",
        self: id === self,
        coordinator: false,
        share: 0,
        samples: 0,
        bytesInPerSecond: 0,
        bytesOutPerSecond: 0,
      });
    }
    return views;
  }

  #person(id: MemberId): Person {
    if (id === this.#network.self) return { name: this.#name, gpu: this.#options.gpu };
    const known = this.#people.get(id) ?? this.#board.status?.members.find((member) => member.id === id);
    return { name: known?.name ?? shortId(id), gpu: known?.gpu ?? nobody };
  }

  #nameOf(id: MemberId): string {
    return this.#person(id).name || shortId(id);
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new Error("This tab has left the job for good: open its link again.");
  }

  #mustTrain(): Trainer {
    if (this.#trainer === null || this.#trainer.committed < 0)
      throw new Error("This tab only watches, so it has no weights: press Join first.");
    return this.#trainer;
  }
}

function sendControl(link: Link, epoch: number, message: ControlMessage): void {
  const header: FrameHeader = { kind: "control", epoch, step: 0, channel: 0, offset: 0 };
  link.send(header, encodeMessage(message));
}

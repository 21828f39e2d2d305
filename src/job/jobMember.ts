import { equalBytes } from "../base/bytes";
import { type Clock, realClock, type TimerHandle } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import { Ring } from "../distributed/ring";
import type { Frame, Link, MemberId, Network } from "../transport/link";
import { Agreements } from "./agreements";
import { AuditLog } from "./auditLog";
import { ByteMeter } from "./byteMeter";
import { trainingRun } from "./coordinator";
import { EarlyChunks } from "./earlyChunks";
import { firstWelcome } from "./firstContact";
import { History } from "./history";
import { JobView } from "./jobView";
import { manifestHash, sha256 as subtleSha256 } from "./manifest";
import { Membership } from "./membership";
import type { Effect, MembershipEvent, TimerName } from "./membershipEvents";
import type { ControlMessage, Generation, RunState, StateKind, Status } from "./messages";
import { Peers } from "./peers";
import { Pulse } from "./pulse";
import type { Evaluation, Prediction, Replica, TrainingState } from "./replica";
import type { JobAuditLine, JobResult } from "./result";
import type { GpuDescription, JobSnapshot } from "./snapshot";
import type { Manifest } from "./spec";
import type { TransferContents } from "./stateTransfer";
import { skipsUntilPause, Trainer } from "./trainer";
import { Transfers } from "./transfers";

/** A watcher asks for the losses that it lacks at most this often. */
const historyEvery = 3_000;
/** How long an all-reduce may go without a byte. */
const ringTimeout = 30_000;
export type OnProgress = (what: string, loaded: number, total: number) => void;

interface CommonOptions {
  readonly network: Network;
  readonly name: string;
  readonly gpu: GpuDescription;
  /** Loads data and model; called when this tab is to train. */
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

/**
 * This tab's part in a job, from the first link to the end: watching, training, leaving, coming back.
 * It carries out what the membership's state machine wants, and ties it to links, trainer and view.
 */
export class JobMember {
  /** Called when there is something new to show; a snapshot tells what. */
  onChange: (() => void) | null = null;
  /** For the first member: resolves when the model is ready and training begins, rejects with a sentence when it can't. */
  started: Promise<void> = Promise.resolve();
  readonly manifest: Manifest;
  readonly #options: CommonOptions;
  readonly #self: MemberId;
  readonly #clock: Clock;
  readonly #sha256: (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;
  readonly #membership: Membership;
  readonly #history = new History();
  readonly #audit = new AuditLog();
  readonly #meter: ByteMeter;
  readonly #peers: Peers;
  readonly #view: JobView;
  readonly #pulse: Pulse;
  readonly #agreements: Agreements;
  readonly #transfers: Transfers;
  readonly #early: EarlyChunks;
  readonly #timers = new Map<TimerName, TimerHandle>();
  readonly #events: MembershipEvent[] = [];
  #dispatching = false;
  #historyAskedAt = Number.NEGATIVE_INFINITY;
  #replica: Replica | null = null;
  #trainer: Trainer | null = null;
  #ring: Ring | null = null;
  #joined: Deferred<void> | null = null;
  #left: Deferred<void> | null = null;
  #closed = false;

  private constructor(options: CommonOptions, manifest: Manifest) {
    const { network } = options;
    this.#options = options;
    this.manifest = manifest;
    this.#self = network.self;
    this.#clock = options.clock ?? realClock;
    this.#sha256 = options.sha256 ?? subtleSha256;
    this.#meter = new ByteMeter(this.#clock);
    this.#membership = new Membership({
      self: network.self,
      batch: manifest.spec.batch,
      steps: manifest.spec.steps,
      nameOf: (member) => this.#nameOf(member),
    });
    this.#peers = new Peers(network, options, this.#meter, {
      epoch: () => this.#membership.epoch,
      isMember: () => this.#isMember,
      hearsay: (id) => this.#view.board.status?.members.find((member) => member.id === id),
      onLinked: (peer) => this.#dispatch({ kind: "linked", peer }),
      onUnlinked: (peer, reason) => this.#onUnlinked(peer, reason),
      onMessage: (from, message) => this.#onMessage(from, message),
      onChunk: (from, frame) => this.#onChunk(from, frame),
      onState: (from, frame) => this.#transfers.receive(from, frame),
      onDropped: (sentence) => this.#view.notice("error", sentence),
    });
    this.#view = new JobView({
      manifest,
      self: network.self,
      clock: this.#clock,
      membership: this.#membership,
      peers: this.#peers,
      history: this.#history,
      audit: this.#audit,
      meter: this.#meter,
      trainer: () => this.#trainer,
      onChange: () => this.onChange?.(),
    });
    this.#pulse = new Pulse({
      self: network.self,
      clock: this.#clock,
      membership: this.#membership,
      peers: this.#peers,
      view: this.#view,
      audit: this.#audit,
      meter: this.#meter,
      trainer: () => this.#trainer,
      onRebalance: () => this.#dispatch({ kind: "rebalance" }),
      onTick: () => this.onChange?.(),
    });
    this.#agreements = new Agreements(this.#clock);
    // What two steps move, and something for their frames.
    this.#early = new EarlyChunks(16 * manifest.elements + 2 ** 20);
    this.#transfers = new Transfers({
      manifest,
      sha256: this.#sha256,
      sendOffer: (link, offer) => this.#peers.send(link.peer, offer),
      onReceived: (from, epoch, contents) => this.#take(from, epoch, contents),
      onBad: (from, sentence) => this.#peers.drop(from, sentence),
    });
  }

  /** The first member: makes the replica, then trains; `started` tells how that went. */
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
    const { firstLink } = options;
    const early: Frame[] = [];
    try {
      const { manifest } = await firstWelcome(firstLink, options, options.clock ?? realClock, early);
      if (!equalBytes(await manifestHash(manifest, options.sha256 ?? subtleSha256), options.manifestHash))
        throw new Error("The first contact told of another job than the one that it proved to be in.");
      const member = new JobMember(options, manifest);
      member.#view.ownPhase = { kind: "watching" };
      member.#open(firstLink, early);
      return member;
    } catch (error) {
      firstLink.close("This tab couldn't learn what the job is.");
      throw error;
    }
  }

  /** From watching to training; resolves when this tab is in the ring. */
  async join(): Promise<void> {
    this.#mustBeOpen();
    if (this.#membership.role !== "watching" || this.#joined !== null)
      throw new Error("This tab is in the ring already, or on its way.");
    const joined = deferred<void>();
    this.#joined = joined;
    // It may fail before anyone waits for it.
    joined.promise.catch(() => {});
    try {
      await this.#prepare(false);
    } catch (error) {
      this.#joined = null;
      throw error;
    }
    // Unless the person thought better of it meanwhile.
    if (this.#joined === joined) {
      this.#view.ownPhase = { kind: "joining" };
      this.#dispatch({ kind: "join" });
    }
    await joined.promise;
  }

  /** Resolves when this tab is out of the ring; it goes on watching. */
  async leave(): Promise<void> {
    if (this.#membership.role === "watching") {
      if (this.#joined === null) return;
      this.#endJoining("This tab left before it was in the ring.");
      this.#view.ownPhase = { kind: "left" };
      return;
    }
    const left = this.#left ?? deferred<void>();
    this.#left = left;
    this.#dispatch({ kind: "leave" });
    await left.promise;
  }

  /** Each for everyone; resolves when all have agreed. */
  pause(reason = ""): Promise<void> {
    return this.#command({ kind: "paused", by: this.#name, reason: reason.slice(0, 500), until: 0 });
  }
  resume(): Promise<void> {
    return this.#command({ ...trainingRun, by: this.#name });
  }
  stop(): Promise<void> {
    return this.#command({ kind: "stopped", by: this.#name, reason: "", until: 0 });
  }

  /** Says goodbye, closes all links and lets the replica go. */
  close(reason = "This tab was closed."): void {
    if (this.#closed) return;
    this.#dispatch({ kind: "goodbye" });
    this.#closed = true;
    this.#pulse.stop();
    for (const timer of this.#timers.keys()) this.#clearTimer(timer);
    this.#agreements.close(reason);
    this.#trainer?.stop(reason);
    const replica = this.#replica;
    this.#replica = null;
    const idle = this.#trainer?.idle() ?? Promise.resolve();
    if (replica !== null) void idle.then(() => replica.destroy());
    this.#peers.close(reason);
  }

  snapshot(lossesFrom: number): JobSnapshot {
    return this.#view.snapshot(lossesFrom);
  }

  /** Weights and optimizer state between two steps, as copies. Rejects for one that has none. */
  async state(): Promise<TrainingState> {
    return this.#mustTrain().state();
  }

  /** step, loss, validation loss, validation accuracy, members, milliseconds; empty where this tab doesn't know. */
  metricsCsv(): string {
    return this.#history.csv();
  }

  async result(): Promise<JobResult> {
    const trainer = this.#trainer;
    const weightsHash =
      trainer === null || trainer.committed < 0
        ? ""
        : await this.#sha256(new Uint8Array((await trainer.state()).weights.buffer));
    return {
      spec: this.manifest.spec,
      steps: this.#view.step,
      losses: [...this.#history.losses],
      validation: this.#history.validations.at(-1) ?? null,
      samplesPerSecond: this.#view.samplesPerSecond,
      stepMilliseconds: this.#history.stepMilliseconds,
      self: {
        id: this.#self,
        rank: this.#view.rank,
        weightsHash,
        bytesSent: this.#meter.chunksSent.total,
        bytesReceived: this.#meter.chunksReceived.total,
        gradientBytesSent: this.#meter.chunksSent.payload,
        gradientBytesReceived: this.#meter.chunksReceived.payload,
        linkBytesSent: this.#meter.sent,
        linkBytesReceived: this.#meter.received,
        samples: this.#audit.samples,
      },
    };
  }

  /** One line for each committed step that this member computed a part of, with exactly the samples it computed. */
  audit(): readonly JobAuditLine[] {
    return this.#audit.entries.map(({ step, rank, samples }) => ({
      step,
      member: this.#self,
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

  // ---- what comes from the peers

  #open(first: Link | null, early: readonly Frame[]): void {
    this.#options.network.onRefused = (sentence) => this.#view.notice("warning", sentence);
    this.#peers.open(first, early);
    this.#pulse.start();
  }

  #onUnlinked(peer: MemberId, reason: string): void {
    this.#transfers.forget(peer);
    this.#view.board.forget(peer);
    this.#dispatch({ kind: "unlinked", peer, reason });
    this.#checkAlone();
    this.onChange?.();
  }

  #onMessage(from: MemberId, message: ControlMessage): void {
    switch (message.kind) {
      case "hello":
        if (!message.member) this.#welcome(from);
        this.onChange?.();
        break;
      case "welcome":
        this.#dispatch({ kind: "view", epoch: message.epoch, members: message.members, from });
        break;
      case "telemetry":
        this.#view.board.tell(from, message);
        if (message.weights !== null) this.#pulse.compareWeights(message.weights.step, from, message.weights.hash);
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
        this.#view.notice(message.level, message.sentence);
        break;
      default:
        this.#dispatch({ kind: "message", from, message });
    }
  }

  #onChunk(from: MemberId, frame: Frame): void {
    const { generation, roundEpoch } = this.#membership;
    if (generation !== null && frame.epoch < generation.epoch) return;
    if (generation !== null && frame.epoch === generation.epoch) {
      this.#meter.chunksReceived.add(frame.payload.length);
      this.#ring?.receive(from, frame);
      return;
    }
    // Whoever is about to adopt that generation keeps the chunk until then; for anyone else it is of no use.
    if (roundEpoch === null || frame.epoch < roundEpoch) return;
    if (!this.#early.keep(from, frame))
      this.#peers.drop(from, "It sent more gradients of a ring to come than any step has.");
  }

  #onStatus(from: MemberId, status: Status): void {
    if (!this.#isMember && status.epoch < this.#membership.viewEpoch) return;
    const missing = this.#view.hear(status);
    if (this.#isMember) return;
    this.#dispatch({ kind: "view", epoch: status.epoch, members: status.members.map(({ id }) => id), from });
    this.#agreements.reached(status.run.kind);
    if (!missing || this.#clock.now() - this.#historyAskedAt < historyEvery) return;
    this.#historyAskedAt = this.#clock.now();
    this.#peers.send(from, { kind: "history" });
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
        this.#peers.send(effect.to, effect.message);
        break;
      case "dial":
        void this.#dial(effect.peer, effect.via);
        break;
      case "close":
        this.#peers.link(effect.peer)?.close(effect.reason);
        break;
      case "setTimer":
        this.#setTimer(effect.timer, effect.milliseconds);
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
      case "declined":
        this.#declined(effect.sentence);
        break;
      case "notice":
        this.#pulse.tellAll(effect.level, effect.sentence);
        break;
    }
  }

  #setTimer(timer: TimerName, milliseconds: number): void {
    this.#clearTimer(timer);
    const handle = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      this.#dispatch({ kind: "timer", timer });
    }, milliseconds);
    this.#timers.set(timer, handle);
  }

  #clearTimer(timer: TimerName): void {
    const handle = this.#timers.get(timer);
    if (handle !== undefined) this.#clock.clearTimeout(handle);
    this.#timers.delete(timer);
  }

  async #dial(peer: MemberId, via: MemberId): Promise<void> {
    let problem: string | null = null;
    try {
      this.#peers.attach(await this.#options.network.dial(peer, via));
    } catch (error) {
      problem = messageOf(error).slice(0, 500);
    }
    this.#dispatch({ kind: "dialled", peer, problem });
  }

  async #hold(epoch: number, boundary: number, reason: string): Promise<void> {
    const trainer = this.#trainer;
    if (trainer === null) return;
    if (boundary === 0 && this.#isMember) this.#view.regrouping = reason;
    const standing = await trainer.hold(boundary, reason);
    if (this.#membership.roundEpoch !== epoch) return;
    if (this.#isMember) this.#view.regrouping = reason;
    this.#dispatch({ kind: "held", epoch, standing });
  }

  async #serve(epoch: number, to: MemberId, what: StateKind): Promise<void> {
    const link = this.#peers.link(to);
    const trainer = this.#trainer;
    if (link === undefined || trainer === null) return;
    try {
      const contents = await trainer.pack(what, this.#view.elapsed.milliseconds);
      if (this.#membership.roundEpoch === epoch) await this.#transfers.send(link, epoch, contents);
    } catch (error) {
      this.#break(`The training's state couldn't be sent. ${messageOf(error)}`);
    }
  }

  async #sendHistory(to: MemberId): Promise<void> {
    const link = this.#peers.link(to);
    if (link === undefined || this.#trainer === null || !this.#isMember) return;
    const contents = await this.#trainer.pack("history", this.#view.elapsed.milliseconds);
    await this.#transfers.send(link, this.#membership.epoch, contents);
  }

  #take(from: MemberId, epoch: number, contents: TransferContents): void {
    if (contents.what === "history") {
      if (this.#isMember) return;
      this.#history.take(contents.lossesFrom, contents.losses, contents.validations);
      this.onChange?.();
      return;
    }
    if (this.#membership.roundEpoch !== epoch || this.#trainer === null) return;
    const problem = this.#trainer.take(contents);
    if (problem !== null) {
      this.#peers.drop(from, problem);
      return;
    }
    if (contents.what === "training") this.#view.elapsed.set(contents.elapsedMilliseconds);
    this.#dispatch({ kind: "synced", epoch, committed: contents.committed });
  }

  #adopt(generation: Generation): void {
    const trainer = this.#trainer;
    if (trainer === null) return;
    const members = generation.members.map(({ id }) => id);
    this.#ring?.abort("A new ring was formed.");
    this.#ring = members.length === 1 ? null : this.#makeRing(generation.epoch, members);
    this.#view.board.clear();
    this.#view.regrouping = null;
    this.#view.ownPhase = { kind: "training" };
    if (generation.run.kind === "training" && !this.#view.finished) this.#view.elapsed.run();
    else this.#view.elapsed.stop();
    trainer.adopt(generation, members.indexOf(this.#self), this.#ring);
    for (const { from, frame } of this.#early.take()) this.#onChunk(from, frame);
    this.#joined?.resolve();
    this.#joined = null;
    this.#agreements.reached(generation.run.kind);
    this.#view.notice("info", generation.reason);
    for (const peer of this.#peers.ids) if (!members.includes(peer)) this.#welcome(peer);
    this.#pulse.tellStatus();
  }

  #makeRing(epoch: number, members: readonly MemberId[]): Ring {
    return new Ring({
      self: this.#self,
      members,
      epoch,
      clock: this.#clock,
      timeoutMilliseconds: this.#options.ringTimeoutMilliseconds ?? ringTimeout,
      earlyBytes: this.#early.limit,
      send: (to, header, payload) => {
        this.#meter.chunksSent.add(payload.length);
        this.#peers.link(to)?.send(header, payload);
      },
      drained: (to) => this.#peers.link(to)?.drained() ?? Promise.resolve(),
    });
  }

  #released(problem: string | null): void {
    this.#ring?.abort("This tab left the ring.");
    this.#ring = null;
    this.#trainer?.stop("This tab left the ring.");
    this.#view.regrouping = null;
    this.#view.elapsed.stop();
    if (problem !== null) this.#view.notice("error", problem);
    this.#view.ownPhase = problem === null ? { kind: "left" } : { kind: "watching" };
    this.#endJoining(problem ?? "This tab left before it was in the ring.");
    this.#left?.resolve();
    this.#left = null;
  }

  #declined(sentence: string): void {
    this.#view.notice("warning", sentence);
    this.#view.ownPhase = { kind: "watching" };
    this.#endJoining(sentence);
    this.#left?.resolve();
    this.#left = null;
  }

  #endJoining(sentence: string): void {
    this.#joined?.reject(new Error(sentence));
    this.#joined = null;
  }

  /** This tab can't train any more: the others go on without it. */
  #break(sentence: string): void {
    if (this.#closed) return;
    this.#view.notice("error", sentence);
    this.#dispatch({ kind: "goodbye" });
    this.#view.ownPhase = { kind: "failed", message: sentence };
  }

  /** A watcher that lost its last link has nobody to hear from. */
  #checkAlone(): void {
    if (this.#peers.ids.length > 0 || this.#membership.role === "member" || this.#closed) return;
    const { ownPhase, run, finished } = this.#view;
    if (ownPhase.kind === "failed" || ownPhase.kind === "preparing" || run?.kind === "stopped" || finished) return;
    const message = "Nobody runs this job any more, as far as this tab can tell.";
    this.#view.ownPhase = { kind: "failed", message };
    this.#endJoining(message);
  }

  // ---- preparing and training

  async #prepare(begins: boolean): Promise<void> {
    const before = this.#trainer;
    try {
      this.#replica ??= await this.#loadReplica();
      const replica = this.#replica;
      // What a training before still has on the GPU's queue must be over.
      await before?.idle();
      this.#mustBeOpen();
      this.#trainer = this.#makeTrainer(replica, begins);
    } catch (error) {
      this.#view.ownPhase = { kind: "failed", message: messageOf(error) };
      throw error;
    }
  }

  async #loadReplica(): Promise<Replica> {
    const onProgress: OnProgress = (what, loaded, total) => {
      this.#view.ownPhase = { kind: "preparing", what, loaded, total };
    };
    onProgress("the model", 0, 0);
    const replica = await this.#options.makeReplica(this.manifest, onProgress);
    void replica.lost.then((sentence) => {
      if (this.#replica !== replica) return;
      this.#replica = null;
      this.#break(`The GPU was lost. ${sentence}`);
    });
    if (this.#closed) replica.destroy();
    this.#mustBeOpen();
    return replica;
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
        if (step >= this.manifest.spec.steps) this.#view.elapsed.stop();
        this.#dispatch({ kind: "committed", step });
      },
      onFailed: (epoch, sentence) => {
        this.#view.regrouping = sentence;
        this.#dispatch({ kind: "failed", epoch, sentence });
      },
      onBroken: (sentence) => this.#break(sentence),
      onSkipped: (inARow) => {
        if (inARow % skipsUntilPause !== 0 || !this.#membership.coordinates) return;
        const reason = `The gradients of ${inARow} steps in a row weren't finite numbers; a smaller learning rate may help.`;
        this.#pulse.tellAll("error", reason);
        this.#dispatch({ kind: "command", run: { kind: "paused", by: this.#name, reason, until: 0 } });
      },
      onHashed: (step, hash) => this.#pulse.hashed(step, hash),
    });
  }

  #command(run: RunState): Promise<void> {
    this.#mustBeOpen();
    const now = this.#view.run;
    if (now?.kind === run.kind && this.#membership.roundEpoch === null) return Promise.resolve();
    if (now?.kind === "stopped") return Promise.reject(new Error(`The job was stopped by ${now.by}.`));
    const agreed = this.#agreements.wait(run.kind);
    this.#dispatch({ kind: "command", run });
    return agreed;
  }

  /** Tells one who isn't in the ring what the job is and who is. */
  #welcome(to: MemberId): void {
    const { generation } = this.#membership;
    if (generation === null) return;
    const members = generation.members.map(({ id }) => id);
    this.#peers.send(to, { kind: "welcome", manifest: this.manifest, epoch: generation.epoch, members });
  }

  get #isMember(): boolean {
    return this.#membership.role === "member";
  }
  get #name(): string {
    return this.#peers.self.name;
  }

  #nameOf(id: MemberId): string {
    return this.#peers.person(id).name;
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

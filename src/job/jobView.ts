import type { Clock } from "../base/clock";
import type { MemberId } from "../transport/link";
import type { AuditLog } from "./auditLog";
import type { ByteMeter } from "./byteMeter";
import { Elapsed } from "./elapsed";
import type { History } from "./history";
import type { Membership } from "./membership";
import { maxLossesInStatus, type RunState, type Status } from "./messages";
import type { Peers } from "./peers";
import type { JobPhase, JobSnapshot, MemberView, Notice } from "./snapshot";
import type { Manifest } from "./spec";
import { noTiming, StatusBoard } from "./statusBoard";
import type { Trainer } from "./trainer";

const noticesKept = 100;

export interface JobViewOptions {
  readonly manifest: Manifest;
  readonly self: MemberId;
  readonly clock: Clock;
  readonly membership: Membership;
  readonly peers: Peers;
  readonly history: History;
  readonly audit: AuditLog;
  readonly meter: ByteMeter;
  readonly trainer: () => Trainer | null;
  readonly onChange: () => void;
}

/**
 * What there is to show of a job, here and, as its coordinator, to everyone else. A member knows most of it itself; a
 * watcher knows what the coordinator's last status said.
 */
export class JobView {
  readonly board = new StatusBoard();
  readonly elapsed: Elapsed;
  readonly #options: JobViewOptions;
  #notices: readonly Notice[] = [];
  #phase: JobPhase = { kind: "connecting" };
  #regroupReason: string | null = null;
  /** Losses below this went out in a status already. */
  #lossesTold = 0;

  constructor(options: JobViewOptions) {
    this.#options = options;
    this.elapsed = new Elapsed(options.clock);
  }

  /** What this tab is about; while it is in the ring, what the ring does shows instead of "training". */
  get ownPhase(): JobPhase {
    return this.#phase;
  }
  set ownPhase(phase: JobPhase) {
    this.#phase = phase;
    this.#options.onChange();
  }

  /** Why the members stand still for a moment; null when they don't. */
  set regrouping(reason: string | null) {
    if (this.#regroupReason === reason) return;
    this.#regroupReason = reason;
    this.#options.onChange();
  }

  notice(kind: Notice["kind"], text: string): void {
    this.#notices = [...this.#notices, { at: Date.now(), kind, text }].slice(-noticesKept);
    this.#options.onChange();
  }

  get run(): RunState | null {
    return this.#options.membership.generation?.run ?? this.board.status?.run ?? null;
  }
  get finished(): boolean {
    const trainer = this.#trainer;
    return trainer === null ? (this.board.status?.finished ?? false) : trainer.finished;
  }
  /** Committed steps. */
  get step(): number {
    if (this.#trainer !== null) return Math.max(0, this.#trainer.committed);
    return Math.max(this.board.status?.step ?? 0, this.#options.trainer()?.committed ?? 0);
  }
  get rank(): number | null {
    const { membership, self } = this.#options;
    const rank = membership.generation?.members.findIndex(({ id }) => id === self) ?? -1;
    return rank < 0 ? null : rank;
  }
  get samplesPerSecond(): number {
    if (this.#trainer === null) return this.board.status?.samplesPerSecond ?? 0;
    const { total } = this.#trainer.timing;
    return total > 0 ? (1000 * this.#options.manifest.spec.batch) / total : 0;
  }

  snapshot(lossesFrom: number): JobSnapshot {
    const { manifest, history } = this.#options;
    const from = Math.min(Math.max(0, lossesFrom), history.losses.length);
    return {
      job: manifest.job,
      maker: manifest.maker,
      spec: manifest.spec,
      phase: this.currentPhase(),
      step: this.step,
      lossesFrom: from,
      losses: history.losses.slice(from),
      validations: [...history.validations],
      members: this.members,
      watchers: this.#watchers,
      samplesPerSecond: this.samplesPerSecond,
      timing: this.#trainer?.timing ?? this.board.status?.timing ?? noTiming,
      elapsedMilliseconds: this.elapsed.milliseconds,
      remainingMilliseconds: this.#remaining,
      notices: this.#notices,
    };
  }

  /** What the coordinator tells everyone; null when this member isn't in a ring. Each loss is told once. */
  tell(): Status | null {
    const { membership, history } = this.#options;
    const { generation } = membership;
    const trainer = this.#trainer;
    if (generation === null || trainer === null) return null;
    const from = Math.min(this.#lossesTold, history.losses.length);
    const losses = history.losses.slice(from, from + maxLossesInStatus);
    this.#lossesTold = from + losses.length;
    return {
      kind: "status",
      epoch: generation.epoch,
      step: trainer.committed,
      run: generation.run,
      finished: trainer.finished,
      lossesFrom: from,
      losses,
      validations: history.validations.slice(-50),
      members: this.members
        .filter(({ rank }) => rank !== null)
        .map(({ id, name, gpu, share, samples, bytesInPerSecond, bytesOutPerSecond }) => ({
          id,
          name,
          gpu,
          share,
          samples,
          bytesInPerSecond,
          bytesOutPerSecond,
        })),
      joining: membership.joining,
      watchers: this.#watchers,
      samplesPerSecond: this.samplesPerSecond,
      timing: trainer.timing,
      elapsedMilliseconds: this.elapsed.milliseconds,
      remainingMilliseconds: this.#remaining,
    };
  }

  /** Notes a status. @returns whether losses are missing here between what is known and what it tells. */
  hear(status: Status): boolean {
    const { history } = this.#options;
    this.board.status = status;
    if (this.#trainer !== null) {
      // A member has its own curve; should it coordinate one day, it goes on telling from here.
      this.#lossesTold = status.lossesFrom + status.losses.length;
      return false;
    }
    this.elapsed.set(status.elapsedMilliseconds);
    if (status.lossesFrom > history.losses.length) return true;
    history.take(status.lossesFrom, status.losses, status.validations);
    return false;
  }

  currentPhase(): JobPhase {
    const own = this.#phase;
    const { run } = this;
    switch (own.kind) {
      case "training":
        if (run?.kind === "stopped") return { kind: "stopped", by: run.by };
        if (this.finished) return { kind: "finished" };
        if (this.#regroupReason !== null) return { kind: "regrouping", reason: this.#regroupReason };
        if (run?.kind === "paused") return { kind: "paused", by: run.by, reason: run.reason };
        return own;
      case "watching":
        if (run?.kind === "stopped") return { kind: "stopped", by: run.by };
        return this.finished ? { kind: "finished" } : own;
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

  get members(): MemberView[] {
    const { membership, self, manifest } = this.#options;
    const { generation } = membership;
    const { status } = this.board;
    const ranked =
      generation !== null
        ? generation.members.map(({ id, count }) => ({ id, share: count / manifest.spec.batch }))
        : (status?.members ?? []).filter(({ id }) => id !== self);
    const paused = this.run?.kind === "paused";
    const views = ranked.map(({ id, share }, rank): MemberView => {
      const lost = generation !== null && id !== self && !this.#options.peers.has(id);
      return { ...this.#member(id), rank, state: lost ? "lost" : paused ? "paused" : "training", share };
    });
    const joining = new Set(generation !== null ? membership.joining : (status?.joining ?? []));
    if (membership.role === "joining") joining.add(self);
    for (const id of joining) if (!ranked.some((member) => member.id === id)) views.push(this.#member(id));
    return views;
  }

  /** One that is about to join, from which a member differs by rank, state and share. */
  #member(id: MemberId): MemberView {
    const { self, peers, audit, meter } = this.#options;
    const told = this.board.of(id);
    const own = id === self;
    return {
      id,
      ...peers.person(id),
      rank: null,
      state: "joining",
      self: own,
      coordinator: id === this.#options.membership.leader,
      share: 0,
      samples: own ? audit.samples : (told?.samples ?? 0),
      bytesInPerSecond: own ? meter.inPerSecond : (told?.bytesInPerSecond ?? 0),
      bytesOutPerSecond: own ? meter.outPerSecond : (told?.bytesOutPerSecond ?? 0),
    };
  }

  /** The trainer of a tab that is in the ring. */
  get #trainer(): Trainer | null {
    return this.#options.membership.role === "member" ? this.#options.trainer() : null;
  }

  get #watchers(): number {
    const { membership, peers } = this.#options;
    if (membership.generation === null) return this.board.status?.watchers ?? 0;
    const members = new Set(membership.generation.members.map(({ id }) => id));
    return peers.ids.filter((peer) => !members.has(peer)).length;
  }

  get #remaining(): number | null {
    if (this.#trainer === null) return this.board.status?.remainingMilliseconds ?? null;
    const { total } = this.#trainer.timing;
    return total > 0 ? total * (this.#options.manifest.spec.steps - this.step) : null;
  }
}

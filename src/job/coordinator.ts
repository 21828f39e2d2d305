import type { MemberId } from "../transport/link";
import { type Effect, timeouts } from "./membershipEvents";
import {
  type ControlMessage,
  type Generation,
  maxMembers,
  type Report,
  type RunState,
  type StateKind,
} from "./messages";
import { shareOut } from "./shares";

/** What the coordinator's part needs of the member that it belongs to. */
export interface CoordinatorHost {
  readonly self: MemberId;
  generation(): Generation | null;
  /** The generation's members, and those that a round under way would add, by rank. */
  roster(): readonly MemberId[];
  /** Linked and not gone; true for this member itself. */
  alive(member: MemberId): boolean;
  /** Treats a member as gone until it asks to join again. */
  forget(member: MemberId): void;
  /** A new epoch, above all that this member has seen. */
  takeEpoch(): number;
  send(to: MemberId, message: ControlMessage): void;
  emit(effect: Effect): void;
  nameOf(member: MemberId): string;
}

/** The forming of one generation. */
interface Round {
  readonly epoch: number;
  /** The step that nobody starts before the next generation; 0 means stop at once. */
  readonly boundary: number;
  readonly reason: string;
  /** By rank; those that join come last. */
  readonly participants: readonly MemberId[];
  readonly reports: Map<MemberId, Report>;
  stage: "reports" | "connecting" | "syncing";
  /** Whose report, which link or whose taking in is being waited for. */
  readonly waiting: Set<string>;
}

/**
 * Forms generations: the one mechanism for joins, leaves, losses, takeovers, new shares, pause, resume and stop.
 * Prepare; collect reports; mend missing links; bring everyone to the same step; issue the generation. Whoever is lost on
 * the way is left out and the round begins anew with a higher epoch: reports are about what a member has, so a round can
 * begin again at any point.
 */
export class Coordinator {
  readonly #host: CoordinatorHost;
  readonly #batch: number;
  #round: Round | null = null;
  // What the next generation is to bring.
  readonly #joiners = new Set<MemberId>();
  /** With why they have to go; null for those that asked. */
  readonly #leavers = new Map<MemberId, string | null>();
  #run: RunState | null = null;
  #rebalance = false;
  /** Links that were dialled since the last generation: each is tried once. */
  readonly #tried = new Set<string>();
  /** How often the all-reduce failed at the same step with nobody lost. */
  #failures = { committed: -1, count: 0 };

  constructor(host: CoordinatorHost, batch: number) {
    this.#host = host;
    this.#batch = batch;
  }

  get forming(): boolean {
    return this.#round !== null;
  }
  get joining(): readonly MemberId[] {
    return [...this.#joiners];
  }

  isForming(epoch: number): boolean {
    return this.#round?.epoch === epoch;
  }

  /** The shares of a member that is alone. */
  get wholeBatch(): { readonly from: number; readonly count: number } {
    return { from: 0, count: this.#batch };
  }

  /** Whether a round is under way that stops everyone at once and began after `epoch`. */
  isImmediateAfter(epoch: number): boolean {
    return this.#round !== null && this.#round.boundary === 0 && this.#round.epoch > epoch;
  }

  /** Another member coordinates: what is asked of it is asked again by those who want it. */
  abandon(): void {
    this.#end();
    this.#joiners.clear();
    this.#leavers.clear();
    this.#run = null;
    this.#rebalance = false;
    this.#failures = { committed: -1, count: 0 };
  }

  join(member: MemberId): void {
    if (this.#host.roster().length + this.#joiners.size >= maxMembers) {
      this.#host.send(member, { kind: "declined", sentence: `This job has ${maxMembers} members, which is the most.` });
      return;
    }
    this.#joiners.add(member);
  }

  leave(member: MemberId): void {
    this.#leavers.set(member, null);
  }

  command(run: RunState): void {
    // A stop is for good.
    if (this.#run?.kind !== "stopped" && this.#host.generation()?.run.kind !== "stopped") this.#run = run;
  }

  rebalance(): void {
    this.#rebalance = true;
  }

  /** Begins a planned round if something is wanted and none is under way. `committed`: steps of this member. */
  plan(committed: number): void {
    const generation = this.#host.generation();
    if (this.#round !== null || generation === null) return;
    const reasons = [
      ...[...this.#joiners].map((id) => `${this.#host.nameOf(id)} joins.`),
      ...[...this.#leavers.keys()].map((id) => `${this.#host.nameOf(id)} leaves.`),
      ...(this.#run === null ? [] : [describeRun(this.#run)]),
      ...(this.#rebalance ? ["The shares follow the members' speeds."] : []),
    ];
    if (reasons.length === 0) return;
    // Members are never more than a step apart, so nobody has begun the step after the next one.
    const underWay = generation.run.kind === "training" && generation.members.length > 1;
    this.#begin(underWay ? committed + 2 : committed, reasons.join(" ").slice(0, 500));
  }

  /** Begins an immediate round: what is under way is aborted and retried. */
  regroup(reason: string): void {
    this.#begin(0, reason);
  }

  /** An all-reduce failed with nobody known to be lost. */
  failed(reason: string, committed: number): void {
    const { count, committed: before } = this.#failures;
    this.#failures = { committed, count: before === committed ? count + 1 : 1 };
    this.#begin(0, reason);
  }

  /** A member or someone who wanted to join is gone. */
  lost(member: MemberId, reason: string): void {
    this.#joiners.delete(member);
    this.#leavers.delete(member);
    const concerned = this.#round?.participants.includes(member) ?? this.#host.roster().includes(member);
    if (concerned) this.#begin(0, reason);
  }

  /** A member that was lost is linked again. */
  linked(member: MemberId): void {
    const round = this.#round;
    if (round === null || round.participants.includes(member) || !this.#host.roster().includes(member)) return;
    this.#begin(0, `${this.#host.nameOf(member)} is linked again.`);
  }

  stale(from: MemberId): void {
    if (this.#round?.participants.includes(from)) this.#begin(0, this.#round.reason);
  }

  report(from: MemberId, report: Report): void {
    const round = this.#round;
    if (round === null || round.stage !== "reports" || report.epoch !== round.epoch || !round.waiting.delete(from))
      return;
    round.reports.set(from, report);
    if (round.waiting.size === 0) this.#connect(round);
  }

  connected(a: MemberId, b: MemberId): void {
    const round = this.#round;
    if (round === null || round.stage !== "connecting" || !round.waiting.delete(pairOf(a, b))) return;
    if (round.waiting.size === 0) this.#begin(0, round.reason);
  }

  synced(from: MemberId, epoch: number): void {
    const round = this.#round;
    if (round === null || round.stage !== "syncing" || epoch !== round.epoch || !round.waiting.delete(from)) return;
    if (round.waiting.size === 0) this.#issue(round);
  }

  timeUp(): void {
    const round = this.#round;
    if (round === null) return;
    const silent = round.participants.filter((id) => round.waiting.has(id) && id !== this.#host.self);
    switch (round.stage) {
      case "reports":
        if (round.boundary > 0) this.#begin(0, round.reason);
        else if (silent.length === 0) this.#setTimer(round);
        else {
          for (const id of silent)
            this.#drop(
              round,
              id,
              `${this.#host.nameOf(id)} didn't answer within ${timeouts.report / 1000} s and is dropped.`,
              true,
            );
          this.#begin(0, round.reason);
        }
        break;
      case "connecting":
        // What isn't linked by now is left out when the reports are in.
        this.#begin(0, round.reason);
        break;
      case "syncing":
        for (const id of silent)
          this.#drop(
            round,
            id,
            `${this.#host.nameOf(id)} didn't receive the training's state within ${timeouts.sync / 1000} s and is dropped.`,
            false,
          );
        this.#begin(0, round.reason);
        break;
    }
  }

  #begin(boundary: number, reason: string): void {
    const host = this.#host;
    const members = host.roster().filter((id) => host.alive(id) && !this.#joiners.has(id));
    const joiners = [...this.#joiners].filter((id) => host.alive(id));
    const participants = [...members, ...joiners];
    const round: Round = {
      epoch: host.takeEpoch(),
      boundary,
      reason,
      participants,
      reports: new Map(),
      stage: "reports",
      waiting: new Set(participants),
    };
    this.#round = round;
    this.#setTimer(round);
    for (const id of participants)
      host.send(id, { kind: "prepare", epoch: round.epoch, boundary, members: participants, reason });
  }

  /** Mends the links between members, once each; where that fails, the higher rank is dropped. */
  #connect(round: Round): void {
    const host = this.#host;
    const attempts: (() => void)[] = [];
    const attempt = (a: MemberId, b: MemberId, start: () => void) => {
      this.#tried.add(pairOf(a, b));
      round.waiting.add(pairOf(a, b));
      attempts.push(start);
    };
    for (const lost of host.roster()) {
      if (round.participants.includes(lost) || this.#tried.has(pairOf(host.self, lost))) continue;
      const via = round.participants.find((id) => id !== host.self && round.reports.get(id)?.links.includes(lost));
      if (via !== undefined) attempt(host.self, lost, () => host.emit({ kind: "dial", peer: lost, via }));
    }
    const dropped = new Map<MemberId, string>();
    const linkedTo = (a: MemberId, b: MemberId) => round.reports.get(a)?.links.includes(b) ?? false;
    round.participants.forEach((b, rank) => {
      for (const a of round.participants.slice(0, rank)) {
        if (a === host.self || dropped.has(a) || dropped.has(b) || linkedTo(a, b) || linkedTo(b, a)) continue;
        if (this.#tried.has(pairOf(a, b)))
          dropped.set(
            b,
            `No link could be made between ${host.nameOf(a)} and ${host.nameOf(b)}, so the latter is dropped.`,
          );
        else attempt(a, b, () => host.send(a, { kind: "connect", epoch: round.epoch, peer: b }));
      }
    });
    const stuck = this.#stuck(round);
    if (stuck !== null) {
      const sentence = `${host.nameOf(stuck)} kept the others waiting at the same step three times and is dropped.`;
      // This member itself can only hand over to the next.
      if (stuck === host.self) {
        this.#leavers.set(stuck, sentence);
        host.emit({ kind: "notice", level: "warning", sentence });
      } else dropped.set(stuck, sentence);
    }
    if (dropped.size > 0) {
      for (const [id, sentence] of dropped) this.#drop(round, id, sentence, false);
      this.#begin(0, round.reason);
    } else if (attempts.length > 0) {
      round.stage = "connecting";
      this.#setTimer(round);
      for (const start of attempts) start();
    } else this.#sync(round);
  }

  /** Who to drop when the all-reduce of one step failed three times: who is still computing, or else the last. */
  #stuck(round: Round): MemberId | null {
    if (this.#failures.count < 3 || round.participants.length < 2) return null;
    this.#failures = { committed: -1, count: 0 };
    const computing = round.participants.filter((id) => round.reports.get(id)?.computing);
    return computing.find((id) => id !== this.#host.self) ?? computing[0] ?? round.participants.at(-1) ?? null;
  }

  /** Brings everyone to the latest committed step. */
  #sync(round: Round): void {
    const host = this.#host;
    const reports = [...round.reports].map(([id, report]) => ({ id, ...report }));
    const target = Math.max(...reports.map(({ committed }) => committed));
    // This member itself first, since it has a link to everyone for sure.
    const sources = reports
      .filter(({ committed }) => committed === target)
      .sort((a, b) => Number(b.id === host.self) - Number(a.id === host.self));
    const orders: (() => void)[] = [];
    for (const { id, committed } of reports) {
      if (committed === target) continue;
      const holder = committed === target - 1 ? sources.find(({ buckets }) => buckets) : undefined;
      // One that leaves is still given the step that it computed a part of.
      if (holder === undefined && this.#leavers.has(id)) continue;
      const source = holder ?? sources[0]!;
      const what: StateKind = holder === undefined ? "training" : "buckets";
      round.waiting.add(id);
      orders.push(() => host.send(source.id, { kind: "serve", epoch: round.epoch, to: id, what }));
    }
    if (orders.length === 0) {
      this.#issue(round);
      return;
    }
    round.stage = "syncing";
    this.#setTimer(round);
    for (const order of orders) order();
  }

  #issue(round: Round): void {
    const host = this.#host;
    const before = host.generation();
    if (before === null) return;
    const leavers = [...this.#leavers].filter(([id]) => round.participants.includes(id));
    const ids = round.participants.filter((id) => !this.#leavers.has(id));
    const generation = ids.length > 0 ? this.#generation(round, before, ids) : null;
    this.#end();
    this.#tried.clear();
    for (const id of ids) this.#joiners.delete(id);
    this.#leavers.clear();
    this.#run = null;
    this.#rebalance = false;
    if (generation !== null) for (const id of ids) if (id !== host.self) host.send(id, generation);
    for (const [id, problem] of leavers) host.send(id, { kind: "released", epoch: round.epoch, problem });
    if (generation !== null && ids.includes(host.self)) host.send(host.self, generation);
  }

  #generation(round: Round, before: Generation, ids: readonly MemberId[]): Generation {
    const startStep = Math.max(...[...round.reports.values()].map(({ committed }) => committed));
    const reports = ids.map((id) => round.reports.get(id)!);
    return {
      kind: "generation",
      epoch: round.epoch,
      members: this.#shares(before, ids, reports),
      startStep,
      // Those further behind got the validations together with the weights.
      validate: reports.some(({ committed, validated }) => committed >= startStep - 1 && validated !== startStep),
      run: this.#nextRun(before, ids.length),
      reason: round.reason,
    };
  }

  /** The old shares where the same members go on, so that gradients computed for a step that is retried stay good. */
  #shares(before: Generation, ids: readonly MemberId[], reports: readonly Report[]): Generation["members"] {
    const same = ids.length === before.members.length && ids.every((id, rank) => before.members[rank]?.id === id);
    if (same && !this.#rebalance) return before.members;
    const speeds = reports.map(({ samplesPerSecond }) => samplesPerSecond);
    const known = speeds.filter((speed) => speed > 0);
    const mean = known.length === 0 ? 1 : known.reduce((sum, speed) => sum + speed, 0) / known.length;
    const shares = shareOut(
      this.#batch,
      speeds.map((speed) => (speed > 0 ? speed : mean)),
    );
    return ids.map((id, rank) => ({ id, ...shares[rank]! }));
  }

  #nextRun(before: Generation, members: number): RunState {
    const run = this.#run ?? before.run;
    return run.kind === "paused" && run.until > 0 && members >= run.until ? trainingRun : run;
  }

  #drop(round: Round, member: MemberId, sentence: string, close: boolean): void {
    const host = this.#host;
    this.#joiners.delete(member);
    this.#leavers.delete(member);
    host.forget(member);
    host.send(member, { kind: "released", epoch: round.epoch, problem: sentence });
    host.emit({ kind: "notice", level: "warning", sentence });
    if (close) host.emit({ kind: "close", peer: member, reason: sentence });
  }

  #setTimer(round: Round): void {
    const milliseconds =
      round.stage === "connecting"
        ? timeouts.connect
        : round.stage === "syncing"
          ? timeouts.sync
          : round.boundary > 0
            ? timeouts.boundary
            : timeouts.report;
    this.#host.emit({ kind: "setTimer", timer: "round", milliseconds });
  }

  #end(): void {
    if (this.#round === null) return;
    this.#round = null;
    this.#host.emit({ kind: "clearTimer", timer: "round" });
  }
}

export const trainingRun: RunState = { kind: "training", by: "", reason: "", until: 0 };

function describeRun(run: RunState): string {
  switch (run.kind) {
    case "training":
      return `Resumed by ${run.by}.`;
    case "paused":
      return `Paused by ${run.by}. ${run.reason}`.trim();
    case "stopped":
      return `Stopped by ${run.by}.`;
  }
}

function pairOf(a: MemberId, b: MemberId): string {
  return a < b ? `${a}-${b}` : `${b}-${a}`;
}

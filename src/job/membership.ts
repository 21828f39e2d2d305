import type { MemberId } from "../transport/link";
import { Coordinator, type CoordinatorHost } from "./coordinator";
import { type Effect, type MembershipEvent, type TimerName, timeouts } from "./membershipEvents";
import type { ControlMessage, Generation, MessageOf, RunState } from "./messages";

export interface MembershipOptions {
  readonly self: MemberId;
  /** Samples of a global batch, and steps of the whole training. */
  readonly batch: number;
  readonly steps: number;
  readonly nameOf: (member: MemberId) => string;
}

/** Watching: linked, without a part in the training. Joining: asked to be taken in. Member: has adopted a generation. */
export type Role = "watching" | "joining" | "member";

/**
 * A member's part in forming generations, as a pure state machine: events in, effects out.
 *
 * The coordinator is the first member of the generation. When it is lost, the lowest rank alive takes over by preparing a
 * round with a higher epoch. A `prepare` is accepted from whom nobody alive outranks; its epoch is a promise to refuse
 * everything older.
 */
export class Membership {
  readonly #self: MemberId;
  readonly #steps: number;
  readonly #nameOf: (member: MemberId) => string;
  readonly #coordinator: Coordinator;
  readonly #linked = new Set<MemberId>();
  /** Said goodbye or were dropped, and are perhaps still linked. */
  readonly #gone = new Set<MemberId>();
  #role: Role = "watching";
  #generation: Generation | null = null;
  #roster: readonly MemberId[] = [];
  /** Whom a watcher takes for members, the coordinator first. */
  #view: { readonly epoch: number; readonly members: readonly MemberId[] } = { epoch: 0, members: [] };
  /** The highest epoch prepared or adopted. */
  #promised = 0;
  /** The round that this member prepared for. */
  #following: { readonly epoch: number; readonly coordinator: MemberId } | null = null;
  /** Who has to begin a round before the timer "regroup" ends. */
  #awaiting: MemberId | null = null;
  /** Members that someone asked this member to dial, with whom to tell. */
  readonly #ordered = new Map<MemberId, { readonly epoch: number; readonly by: MemberId }>();
  /** Coordinators that a link was asked for once because others still have one to them. */
  readonly #redialled = new Set<MemberId>();
  /** Members that a watcher dialled, by the epoch of the view that named them. */
  readonly #viewDials = new Map<MemberId, number>();
  #committed = 0;
  #joinAttempts = 0;
  /** What the person here wants, until it is so; and who was asked. */
  #wish: { leave: boolean; run: RunState | null; asked: MemberId | null } = { leave: false, run: null, asked: null };
  #effects: Effect[] = [];
  readonly #loopback: ControlMessage[] = [];

  constructor(options: MembershipOptions) {
    this.#self = options.self;
    this.#steps = options.steps;
    this.#nameOf = options.nameOf;
    this.#coordinator = new Coordinator(this.#host(), options.batch);
  }

  get role(): Role {
    return this.#role;
  }
  get generation(): Generation | null {
    return this.#generation;
  }
  /** The highest epoch that this member knows of. */
  get epoch(): number {
    return Math.max(this.#promised, this.#view.epoch);
  }
  /** The epoch of the ring that a watcher knows of. */
  get viewEpoch(): number {
    return this.#view.epoch;
  }
  /** The epoch of the round that this member prepared for; null when none is under way. */
  get roundEpoch(): number | null {
    return this.#following?.epoch ?? null;
  }
  get coordinates(): boolean {
    return this.#role === "member" && this.#generation?.members[0]?.id === this.#self;
  }
  /** Who coordinates, as far as this member knows. */
  get leader(): MemberId | null {
    if (this.#role === "member") return this.#generation?.members[0]?.id ?? null;
    return this.#view.members[0] ?? null;
  }
  /** Those that asked this coordinator to be taken in. */
  get joining(): readonly MemberId[] {
    return this.#coordinator.joining;
  }

  handle(event: MembershipEvent): readonly Effect[] {
    this.#effects = [];
    this.#on(event);
    for (let message = this.#loopback.shift(); message !== undefined; message = this.#loopback.shift())
      this.#onMessage(this.#self, message);
    return this.#effects;
  }

  #on(event: MembershipEvent): void {
    switch (event.kind) {
      case "create":
        this.#adopt({
          kind: "generation",
          epoch: 1,
          members: [{ id: this.#self, ...this.#coordinator.wholeBatch }],
          startStep: 0,
          validate: false,
          run: event.run,
          reason: "The job begins.",
        });
        break;
      case "linked":
        this.#linked.add(event.peer);
        this.#coordinator.linked(event.peer);
        if (this.#awaiting === event.peer) this.#trouble(null, "A lost link was made again.");
        break;
      case "unlinked":
        if (this.#linked.delete(event.peer)) this.#lost(event.peer, event.reason);
        break;
      case "message":
        this.#onMessage(event.from, event.message);
        break;
      case "timer":
        this.#onTimer(event.timer);
        break;
      case "held":
        if (this.#following?.epoch === event.epoch)
          this.#send(this.#following.coordinator, {
            kind: "report",
            epoch: event.epoch,
            ...event.standing,
            links: [...this.#linked],
          });
        break;
      case "synced":
        if (this.#following?.epoch === event.epoch)
          this.#send(this.#following.coordinator, { kind: "synced", epoch: event.epoch, committed: event.committed });
        break;
      case "dialled": {
        const order = this.#ordered.get(event.peer);
        this.#ordered.delete(event.peer);
        if (order !== undefined)
          this.#send(order.by, { kind: "connected", epoch: order.epoch, peer: event.peer, problem: event.problem });
        this.#coordinator.connected(this.#self, event.peer);
        break;
      }
      case "failed":
        if (this.#generation?.epoch === event.epoch && this.#following === null) this.#trouble(null, event.sentence);
        break;
      case "committed":
        this.#committed = event.step;
        break;
      case "view":
        this.#onView(event.epoch, event.members, event.from);
        break;
      case "rebalance":
        if (!this.coordinates) break;
        this.#coordinator.rebalance();
        this.#plan();
        break;
      case "join":
        if (this.#role !== "watching") break;
        this.#role = "joining";
        this.#joinAttempts = 0;
        this.#askToJoin();
        break;
      case "leave":
        this.#leave();
        break;
      case "command":
        this.#wish.run = event.run;
        this.#askForWishes();
        break;
      case "goodbye":
        this.#sayGoodbye();
        break;
    }
  }

  #onMessage(from: MemberId, message: ControlMessage): void {
    switch (message.kind) {
      case "join":
        this.#onJoin(from);
        break;
      case "leave":
        if (!this.coordinates || !this.#roster.includes(from)) break;
        this.#coordinator.leave(from);
        this.#plan();
        break;
      case "command":
        if (!this.coordinates) break;
        this.#coordinator.command(message.run);
        this.#plan();
        break;
      case "goodbye":
        this.#gone.add(from);
        this.#lost(from, `${this.#nameOf(from)} left.`);
        break;
      case "trouble":
        this.#onTrouble(from, message);
        break;
      case "prepare":
        this.#onPrepare(from, message);
        break;
      case "report":
        this.#coordinator.report(from, message);
        break;
      case "stale":
        this.#promised = Math.max(this.#promised, message.epoch);
        this.#coordinator.stale(from);
        break;
      case "outranked":
        this.#onOutranked(from, message.coordinator);
        break;
      case "connect":
        if (!this.#follows(from, message.epoch)) break;
        if (this.#linked.has(message.peer))
          this.#send(from, { kind: "connected", epoch: message.epoch, peer: message.peer, problem: null });
        else {
          this.#ordered.set(message.peer, { epoch: message.epoch, by: from });
          this.#emit({ kind: "dial", peer: message.peer, via: from });
        }
        break;
      case "connected":
        if (this.#coordinator.isForming(message.epoch)) this.#coordinator.connected(from, message.peer);
        break;
      case "serve":
        if (this.#follows(from, message.epoch))
          this.#emit({ kind: "serve", epoch: message.epoch, to: message.to, what: message.what });
        break;
      case "synced":
        this.#coordinator.synced(from, message.epoch);
        break;
      case "generation":
        if (this.#follows(from, message.epoch) && message.members.some(({ id }) => id === this.#self))
          this.#adopt(message);
        break;
      case "released":
        this.#onReleased(from, message);
        break;
      case "declined":
        if (this.#role === "joining") this.#giveUpJoining(message.sentence);
        break;
      case "hello":
      case "welcome":
      case "offer":
      case "telemetry":
      case "status":
      case "history":
      case "notice":
        // These tell about the training and change nothing about who takes part.
        break;
    }
  }

  #onJoin(from: MemberId): void {
    const generation = this.#generation;
    if (!this.coordinates || generation === null) return;
    if (generation.run.kind === "stopped")
      this.#send(from, { kind: "declined", sentence: `The job was stopped by ${generation.run.by}.` });
    else if (this.#committed >= this.#steps)
      this.#send(from, { kind: "declined", sentence: "The training is finished: there is nothing left to join." });
    else {
      this.#gone.delete(from);
      this.#coordinator.join(from);
      this.#plan();
    }
  }

  #onTimer(timer: TimerName): void {
    switch (timer) {
      case "round":
        this.#coordinator.timeUp();
        break;
      case "follow":
      case "regroup": {
        const silent = timer === "follow" ? this.#following?.coordinator : this.#awaiting;
        if (silent === undefined || silent === null) break;
        const seconds = timeouts[timer] / 1000;
        const sentence = `${this.#nameOf(silent)} should have formed a new ring and didn't within ${seconds} s.`;
        if (!this.#linked.has(silent)) {
          this.#stepDown(`${sentence} It can't be reached from here: join again.`);
          break;
        }
        this.#emit({ kind: "notice", level: "warning", sentence });
        this.#emit({ kind: "close", peer: silent, reason: sentence });
        break;
      }
      case "join":
        if (this.#role === "joining" && this.#following === null) this.#askToJoin();
        break;
      case "leave":
        this.#sayGoodbye();
        break;
    }
  }

  #onPrepare(from: MemberId, prepare: MessageOf<"prepare">): void {
    const own = from === this.#self;
    if (own ? !this.#coordinator.isForming(prepare.epoch) : prepare.epoch <= this.#promised) {
      this.#send(from, { kind: "stale", epoch: this.#promised });
      return;
    }
    if (this.#role === "watching" || (this.#role === "member" && !this.#roster.includes(from))) {
      // Left meanwhile, gave up joining, or was taken into another ring.
      this.#send(from, { kind: "goodbye" });
      return;
    }
    const above = own ? undefined : this.#outranking(from);
    if (above !== undefined) {
      this.#send(from, { kind: "outranked", epoch: this.#promised, coordinator: above });
      return;
    }
    // One that joins can be asked by the rings that a split left behind: the others needn't wait for it.
    const before = this.#following?.coordinator;
    if (this.#role === "joining" && before !== undefined && before !== from) this.#send(before, { kind: "goodbye" });
    if (!own) {
      this.#coordinator.abandon();
      this.#setTimer("follow");
    }
    this.#promised = prepare.epoch;
    this.#following = { epoch: prepare.epoch, coordinator: from };
    const members = this.#generation?.members.map(({ id }) => id) ?? [];
    this.#roster = [...new Set([...members, ...prepare.members])];
    this.#stopAwaiting();
    this.#clearTimer("join");
    this.#emit({ kind: "hold", epoch: prepare.epoch, boundary: prepare.boundary, reason: prepare.reason });
  }

  /** Someone alive who comes before `candidate` as coordinator. */
  #outranking(candidate: MemberId): MemberId | undefined {
    if (this.#role !== "member") return undefined;
    return this.#roster.slice(0, this.#roster.indexOf(candidate)).find((id) => this.#alive(id));
  }

  #adopt(generation: Generation): void {
    const before = this.#roster;
    this.#promised = Math.max(this.#promised, generation.epoch);
    this.#generation = generation;
    this.#roster = generation.members.map(({ id }) => id);
    this.#role = "member";
    this.#following = null;
    this.#ordered.clear();
    this.#redialled.clear();
    this.#stopAwaiting();
    this.#clearTimer("follow");
    this.#clearTimer("join");
    this.#committed = generation.startStep;
    for (const id of this.#roster) this.#gone.delete(id);
    for (const id of before) {
      if (this.#roster.includes(id) || !this.#alive(id) || id === this.#self) continue;
      this.#gone.add(id);
      const problem = `The other members couldn't keep ${this.#nameOf(id)} in the ring: a link to it was lost.`;
      this.#send(id, { kind: "released", epoch: generation.epoch, problem });
    }
    this.#emit({ kind: "adopt", generation });
    const unlinked = this.#roster.find((id) => !this.#alive(id));
    if (unlinked !== undefined) this.#trouble(unlinked, `There is no link to ${this.#nameOf(unlinked)}.`);
    if (this.#wish.run?.kind === generation.run.kind) this.#wish.run = null;
    if (this.#wish.asked !== this.leader) this.#askForWishes();
    if (this.coordinates) this.#plan();
  }

  #onReleased(from: MemberId, message: MessageOf<"released">): void {
    const member = this.#role === "member" && message.epoch > (this.#generation?.epoch ?? 0);
    const joiner = this.#role === "joining" && this.#following !== null && message.epoch >= this.#following.epoch;
    if (joiner || (member && this.#roster.includes(from))) this.#stepDown(this.#wish.leave ? null : message.problem);
  }

  /** A member that this one was linked to is gone, or the link to it. */
  #lost(peer: MemberId, reason: string): void {
    this.#viewDials.delete(peer);
    if (this.#role !== "member") {
      if (this.#following?.coordinator !== peer) return;
      this.#following = null;
      this.#clearTimer("follow");
      if (this.#role === "joining") this.#askToJoin();
      return;
    }
    if (peer === this.#awaiting) {
      this.#succeed(reason);
      return;
    }
    if (this.coordinates && (this.#following === null || this.#following.coordinator === this.#self)) {
      this.#coordinator.lost(peer, reason);
      return;
    }
    if (this.#coordinator.forming) {
      this.#coordinator.lost(peer, reason);
      return;
    }
    if (!this.#roster.includes(peer)) return;
    const leader = this.#following?.coordinator ?? this.leader;
    if (peer === leader) this.#succeed(reason);
    // In a round the coordinator learns it from the reports, or after it from whom misses the link.
    else if (this.#following === null) this.#trouble(peer, reason);
  }

  /** The coordinator is lost: the lowest rank alive forms the next generation. */
  #succeed(reason: string): void {
    const heir = this.#roster.find((id) => this.#alive(id)) ?? this.#self;
    this.#following = null;
    this.#clearTimer("follow");
    if (heir === this.#self) {
      this.#stopAwaiting();
      this.#coordinator.regroup(reason);
    } else {
      this.#await(heir);
      this.#send(heir, { kind: "trouble", epoch: this.#promised, lost: null, sentence: reason.slice(0, 500) });
    }
  }

  /** Calls for a new generation. */
  #trouble(lost: MemberId | null, sentence: string): void {
    const leader = this.leader;
    if (leader === null || !this.#alive(leader)) {
      this.#succeed(sentence);
      return;
    }
    const message = { kind: "trouble", epoch: this.#promised, lost, sentence: sentence.slice(0, 500) } as const;
    if (leader !== this.#self) this.#await(leader);
    this.#send(leader, message);
  }

  #onTrouble(from: MemberId, trouble: MessageOf<"trouble">): void {
    const generation = this.#generation;
    if (this.#role !== "member" || generation === null || !this.#roster.includes(from)) return;
    // What was sent before its sender heard of a newer round is told anew by its report.
    if (trouble.epoch < generation.epoch || this.#coordinator.isImmediateAfter(trouble.epoch)) return;
    const leader = this.#following?.coordinator ?? generation.members[0]?.id;
    if (leader === this.#self || this.#coordinator.forming) {
      if (trouble.lost === null) this.#coordinator.failed(trouble.sentence, this.#committed);
      else this.#coordinator.regroup(trouble.sentence);
    } else if (leader !== undefined && leader !== from && this.#alive(leader))
      this.#send(from, { kind: "outranked", epoch: this.#promised, coordinator: leader });
    else this.#succeed(trouble.sentence);
  }

  /** Others are linked to a coordinator that this member has lost, or knows as gone. */
  #onOutranked(from: MemberId, coordinator: MemberId): void {
    if (this.#role !== "member" || coordinator === this.#self || !this.#roster.includes(coordinator)) return;
    this.#coordinator.abandon();
    this.#following = null;
    this.#await(coordinator);
    if (this.#alive(coordinator))
      this.#send(coordinator, {
        kind: "trouble",
        epoch: this.#promised,
        lost: null,
        sentence: "A round was given up.",
      });
    else if (!this.#redialled.has(coordinator)) {
      this.#redialled.add(coordinator);
      this.#emit({ kind: "dial", peer: coordinator, via: from });
    }
  }

  #onView(epoch: number, members: readonly MemberId[], from: MemberId): void {
    if (this.#role === "member" || epoch < this.#view.epoch) return;
    const other = this.#view.members[0] !== members[0];
    this.#view = { epoch, members };
    if (other && this.#role === "joining" && this.#following === null) this.#askToJoin();
    for (const peer of members) {
      if (peer === this.#self || this.#linked.has(peer) || this.#viewDials.get(peer) === epoch) continue;
      this.#viewDials.set(peer, epoch);
      this.#emit({ kind: "dial", peer, via: from });
    }
  }

  #askToJoin(): void {
    if (this.#joinAttempts >= timeouts.joinAttempts) {
      const seconds = (timeouts.join * timeouts.joinAttempts) / 1000;
      this.#giveUpJoining(`Nobody took this tab into the ring within ${seconds} s: try again.`);
      return;
    }
    this.#joinAttempts += 1;
    const leader = this.#view.members[0];
    if (leader !== undefined && this.#linked.has(leader)) this.#send(leader, { kind: "join" });
    this.#setTimer("join");
  }

  #giveUpJoining(sentence: string): void {
    this.#role = "watching";
    this.#following = null;
    this.#clearTimer("join");
    this.#clearTimer("follow");
    this.#emit({ kind: "declined", sentence });
  }

  #leave(): void {
    switch (this.#role) {
      case "watching":
        break;
      case "joining":
        this.#sayGoodbye();
        break;
      case "member":
        this.#wish.leave = true;
        this.#setTimer("leave");
        this.#askForWishes();
        break;
    }
  }

  #askForWishes(): void {
    const { leader } = this;
    this.#wish.asked = leader;
    if (leader === null) return;
    if (this.#wish.leave) this.#send(leader, { kind: "leave" });
    if (this.#wish.run !== null) this.#send(leader, { kind: "command", run: this.#wish.run });
  }

  #sayGoodbye(): void {
    for (const peer of this.#linked) this.#send(peer, { kind: "goodbye" });
    if (this.#role !== "watching") this.#stepDown(null);
  }

  #stepDown(problem: string | null): void {
    if (this.#generation !== null)
      this.#view = { epoch: this.#generation.epoch, members: this.#roster.filter((id) => id !== this.#self) };
    this.#role = "watching";
    this.#generation = null;
    this.#roster = [];
    this.#following = null;
    this.#wish = { leave: false, run: null, asked: null };
    this.#coordinator.abandon();
    this.#stopAwaiting();
    for (const timer of ["follow", "join", "leave"] as const) this.#clearTimer(timer);
    this.#emit({ kind: "released", problem });
  }

  #plan(): void {
    if (this.#following === null || this.#following.coordinator === this.#self) this.#coordinator.plan(this.#committed);
  }

  #alive(member: MemberId): boolean {
    return member === this.#self || (this.#linked.has(member) && !this.#gone.has(member));
  }

  #follows(from: MemberId, epoch: number): boolean {
    return this.#following?.coordinator === from && this.#following.epoch === epoch;
  }

  #await(member: MemberId): void {
    if (this.#awaiting === member) return;
    this.#awaiting = member;
    this.#setTimer("regroup");
  }

  #stopAwaiting(): void {
    if (this.#awaiting === null) return;
    this.#awaiting = null;
    this.#clearTimer("regroup");
  }

  #send(to: MemberId, message: ControlMessage): void {
    if (to === this.#self) this.#loopback.push(message);
    else this.#emit({ kind: "send", to, message });
  }

  #setTimer(timer: "follow" | "regroup" | "join" | "leave"): void {
    this.#emit({ kind: "setTimer", timer, milliseconds: timeouts[timer] });
  }

  #clearTimer(timer: TimerName): void {
    this.#emit({ kind: "clearTimer", timer });
  }

  #emit(effect: Effect): void {
    this.#effects.push(effect);
  }

  #host(): CoordinatorHost {
    return {
      self: this.#self,
      generation: () => this.#generation,
      roster: () => this.#roster,
      alive: (member) => this.#alive(member),
      forget: (member) => void this.#gone.add(member),
      takeEpoch: () => {
        this.#promised = this.epoch + 1;
        return this.#promised;
      },
      send: (to, message) => this.#send(to, message),
      emit: (effect) => this.#emit(effect),
      nameOf: this.#nameOf,
    };
  }
}

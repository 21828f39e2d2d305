import type { Clock, TimerHandle } from "../base/clock";
import type { MemberId } from "../transport/link";
import type { AuditLog } from "./auditLog";
import type { ByteMeter } from "./byteMeter";
import type { JobView } from "./jobView";
import type { Membership } from "./membership";
import type { Peers } from "./peers";
import { gainOfSharing } from "./shares";
import type { Notice } from "./snapshot";
import type { Trainer } from "./trainer";

/** How often members and watchers hear of each other, in milliseconds. */
const every = 250;
/** How often rates of bytes are taken. */
const ratesEvery = 1000;
/** New shares need so many measured steps, and must make a step faster by this part of it. */
const rebalanceAfter = 15;
const rebalanceGain = 0.15;

export interface PulseOptions {
  readonly self: MemberId;
  readonly clock: Clock;
  readonly membership: Membership;
  readonly peers: Peers;
  readonly view: JobView;
  readonly audit: AuditLog;
  readonly meter: ByteMeter;
  readonly trainer: () => Trainer | null;
  /** The speeds promise a faster step with other shares. */
  readonly onRebalance: () => void;
  readonly onTick: () => void;
}

/** What goes around a few times a second: members tell the coordinator how they do, and it tells everyone. */
export class Pulse {
  readonly #options: PulseOptions;
  #timer: TimerHandle | null = null;
  #nextRates = 0;

  constructor(options: PulseOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.setTimeout(() => this.#tick(), every);
  }

  stop(): void {
    if (this.#timer !== null) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** The coordinator's word to everyone; nothing from anyone else. */
  tellStatus(): void {
    const { membership, view, peers } = this.#options;
    const status = membership.coordinates ? view.tell() : null;
    if (status !== null) peers.toAll(status);
  }

  /** Says something to the person at every tab. */
  tellAll(level: Notice["kind"], sentence: string): void {
    this.#options.view.notice(level, sentence);
    this.#options.peers.toAll({ kind: "notice", level, sentence: sentence.slice(0, 500) });
  }

  /** This member's weights after so many steps have this hash. */
  hashed(step: number, hash: string): void {
    if (this.#options.membership.coordinates) this.compareWeights(step, this.#options.self, hash);
    else this.#sendTelemetry({ step, hash });
  }

  /** Compares the members' weights once all have told their hash. */
  compareWeights(step: number, member: MemberId, hash: string): void {
    const { membership, view, peers } = this.#options;
    const { generation, coordinates } = membership;
    if (!coordinates || generation === null) return;
    const members = generation.members.map(({ id }) => id);
    const others = view.board.compareWeights(step, member, hash, members);
    if (others === null) return;
    const nameOf = (id: MemberId) => peers.person(id).name;
    this.tellAll(
      "error",
      `After ${step} steps the weights of ${others.map(nameOf).join(", ")} differ from those of ${nameOf(members[0]!)}: the replicas have drifted apart, and their tabs should leave and join again.`,
    );
  }

  #tick(): void {
    const { clock, meter, membership, onTick } = this.#options;
    this.start();
    if (clock.now() >= this.#nextRates) {
      this.#nextRates = clock.now() + ratesEvery;
      meter.measure();
    }
    if (membership.coordinates) this.#considerRebalance();
    else if (membership.role === "member") this.#sendTelemetry(null);
    this.tellStatus();
    onTick();
  }

  #sendTelemetry(weights: { readonly step: number; readonly hash: string } | null): void {
    const { membership, peers, audit, meter } = this.#options;
    const { leader } = membership;
    const trainer = this.#options.trainer();
    if (leader === null || trainer === null) return;
    peers.send(leader, {
      kind: "telemetry",
      // The median of fewer steps is no measure.
      samplesPerSecond: trainer.speedSteps >= rebalanceAfter ? trainer.samplesPerSecond : 0,
      timing: trainer.timing,
      samples: audit.samples,
      bytesInPerSecond: meter.inPerSecond,
      bytesOutPerSecond: meter.outPerSecond,
      weights,
    });
  }

  #considerRebalance(): void {
    const { membership, view, self, onRebalance } = this.#options;
    const { generation, roundEpoch } = membership;
    const trainer = this.#options.trainer();
    if (generation === null || trainer === null || roundEpoch !== null || generation.members.length < 2) return;
    if (trainer.speedSteps < rebalanceAfter || trainer.finished) return;
    if (trainer.committed < generation.startStep + rebalanceAfter) return;
    const speeds = generation.members.map(({ id }) =>
      id === self ? trainer.samplesPerSecond : (view.board.of(id)?.samplesPerSecond ?? 0),
    );
    const counts = generation.members.map(({ count }) => count);
    if (gainOfSharing(counts, speeds) > rebalanceGain) onRebalance();
  }
}

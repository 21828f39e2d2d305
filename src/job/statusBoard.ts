import type { Clock } from "../base/clock";
import type { LinkCounters, MemberId } from "../transport/link";
import type { Status, Telemetry } from "./messages";
import type { GpuDescription, StepTiming } from "./snapshot";

/** Who a peer is, by its own account. */
export interface Person {
  readonly name: string;
  readonly gpu: GpuDescription;
}

export const nobody: GpuDescription = { vendor: "", architecture: "", description: "" };
export const noTiming: StepTiming = { compute: 0, wire: 0, optimizer: 0, total: 0 };

/** Bytes over all links since the beginning, closed ones included, and their rates. */
export class ByteMeter {
  readonly #clock: Clock;
  readonly #live = new Set<LinkCounters>();
  #sentBefore = 0;
  #receivedBefore = 0;
  #last: { readonly at: number; readonly sent: number; readonly received: number };
  inPerSecond = 0;
  outPerSecond = 0;
  /** Payloads of gradient chunks, without headers. */
  gradientsSent = 0;
  gradientsReceived = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#last = { at: clock.now(), sent: 0, received: 0 };
  }

  add(counters: LinkCounters): void {
    this.#live.add(counters);
  }

  remove(counters: LinkCounters): void {
    if (!this.#live.delete(counters)) return;
    this.#sentBefore += counters.sentTotal;
    this.#receivedBefore += counters.receivedTotal;
  }

  get sent(): number {
    let sum = this.#sentBefore;
    for (const { sentTotal } of this.#live) sum += sentTotal;
    return sum;
  }
  get received(): number {
    let sum = this.#receivedBefore;
    for (const { receivedTotal } of this.#live) sum += receivedTotal;
    return sum;
  }

  /** Takes the rates anew, over the time since the last call; about once a second is good. */
  measure(): void {
    const { sent, received } = this;
    const at = this.#clock.now();
    const seconds = (at - this.#last.at) / 1000;
    if (seconds <= 0) return;
    this.outPerSecond = (sent - this.#last.sent) / seconds;
    this.inPerSecond = (received - this.#last.received) / seconds;
    this.#last = { at, sent, received };
  }
}

/** What members tell about themselves, and what the coordinator made of it. */
export class StatusBoard {
  readonly #telemetry = new Map<MemberId, Telemetry>();
  /** Hashes of the weights, by step and member. */
  readonly #hashes = new Map<number, Map<MemberId, string>>();
  status: Status | null = null;

  tell(member: MemberId, telemetry: Telemetry): void {
    this.#telemetry.set(member, telemetry);
  }

  of(member: MemberId): Omit<Telemetry, "kind" | "weights"> | null {
    const own = this.#telemetry.get(member);
    if (own !== undefined) return own;
    const told = this.status?.members.find(({ id }) => id === member);
    return told === undefined ? null : { ...told, samplesPerSecond: 0, timing: noTiming };
  }

  forget(member: MemberId): void {
    this.#telemetry.delete(member);
  }

  /** A new generation: what was told about the one before is no guide to it. */
  clear(): void {
    this.#telemetry.clear();
    this.#hashes.clear();
  }

  /**
   * Notes the hash of a member's weights after `step` steps.
   * @returns null, or the members whose weights differ from the first's once all hashes are in.
   */
  compareWeights(step: number, member: MemberId, hash: string, members: readonly MemberId[]): MemberId[] | null {
    const hashes = this.#hashes.get(step) ?? new Map<MemberId, string>();
    this.#hashes.set(step, hashes);
    hashes.set(member, hash);
    if (!members.every((id) => hashes.has(id))) return null;
    this.#hashes.delete(step);
    const first = hashes.get(members[0]!);
    const others = members.filter((id) => hashes.get(id) !== first);
    return others.length > 0 ? others : null;
  }
}

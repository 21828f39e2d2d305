import type { MemberId } from "../transport/link";
import type { Status, Telemetry } from "./messages";
import type { StepTiming } from "./snapshot";

export const noTiming: StepTiming = { compute: 0, wire: 0, optimizer: 0, total: 0 };

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

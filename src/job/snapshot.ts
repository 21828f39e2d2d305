import type { MemberId } from "../transport/link";
import type { JobSpec } from "./spec";

/** A member's GPU as its browser names it; empty strings where the browser keeps it to itself. */
export interface GpuDescription {
  readonly vendor: string;
  readonly architecture: string;
  readonly description: string;
}

/** Where this tab stands with the job. */
export type JobPhase =
  | { readonly kind: "connecting" }
  | { readonly kind: "watching" }
  | { readonly kind: "preparing"; readonly what: string; readonly loaded: number; readonly total: number }
  | { readonly kind: "joining" }
  | { readonly kind: "training" }
  | { readonly kind: "regrouping"; readonly reason: string }
  | { readonly kind: "paused"; readonly by: string; readonly reason: string }
  | { readonly kind: "finished" }
  | { readonly kind: "stopped"; readonly by: string }
  | { readonly kind: "left" }
  | { readonly kind: "failed"; readonly message: string };

export type MemberState = "joining" | "training" | "paused" | "lost";

export interface MemberView {
  readonly id: MemberId;
  readonly name: string;
  readonly gpu: GpuDescription;
  /** Place in the ring; null for those that only watch or are about to join. */
  readonly rank: number | null;
  readonly state: MemberState;
  readonly self: boolean;
  readonly coordinator: boolean;
  /** Part of the global batch that this member computes, 0 to 1. */
  readonly share: number;
  /** Samples computed for committed steps. */
  readonly samples: number;
  readonly bytesInPerSecond: number;
  readonly bytesOutPerSecond: number;
}

/** Medians over the last steps, in milliseconds. */
export interface StepTiming {
  readonly compute: number;
  readonly wire: number;
  readonly optimizer: number;
  readonly total: number;
}

export interface Validation {
  readonly step: number;
  readonly loss: number;
  readonly accuracy: number;
}

/** Something that a person should know: a peer refused, a member gone, a retry. */
export interface Notice {
  readonly at: number;
  readonly kind: "info" | "warning" | "error";
  readonly text: string;
}

/** What a page needs to draw; sent a few times a second. */
export interface JobSnapshot {
  readonly job: string;
  readonly maker: string;
  readonly spec: JobSpec;
  readonly phase: JobPhase;
  /** Committed steps. */
  readonly step: number;
  /** Mean loss over the global batch of each step from `lossesFrom` on: what is new since the snapshot before. */
  readonly lossesFrom: number;
  readonly losses: readonly number[];
  readonly validations: readonly Validation[];
  readonly members: readonly MemberView[];
  readonly watchers: number;
  readonly samplesPerSecond: number;
  readonly timing: StepTiming;
  readonly elapsedMilliseconds: number;
  /** Null until known. */
  readonly remainingMilliseconds: number | null;
  readonly notices: readonly Notice[];
}

import type { MemberId } from "../transport/link";
import type { ControlMessage, Generation, RunState, StateKind } from "./messages";

/** How far a member's trainer is once it stands still for a round. */
export interface Standing {
  /** Committed steps; -1 without any state. */
  readonly committed: number;
  /** Whether the reduced buckets of the last committed step are held. */
  readonly buckets: boolean;
  /** The number of committed steps at the latest validation. */
  readonly validated: number;
  /** Whether the GPU still works on something. */
  readonly computing: boolean;
  readonly samplesPerSecond: number;
}

/** What each wait is for. There is one timer of each name at most. */
export type TimerName = "round" | "follow" | "regroup" | "join" | "leave";

/** The waits, in milliseconds. Whatever is waited for, something else happens when they are over. */
export const timeouts = {
  /** Members reach the boundary of a planned round; then it is made an immediate one. */
  boundary: 20_000,
  /** A member answers an immediate `prepare`; then it is dropped. */
  report: 8_000,
  /** A new link between two members is dialled; then the higher rank is dropped. */
  connect: 10_000,
  /** A member takes in the state that it lacks; then it is dropped. */
  sync: 60_000,
  /** A prepared member hears from its coordinator again; then that one is dropped. */
  follow: 120_000,
  /** The coordinator, or who should be, answers a call for a new generation; then it is dropped. */
  regroup: 15_000,
  /** Until someone who wants to join asks again; so often in all. */
  join: 3_000,
  joinAttempts: 20,
  /** The coordinator lets a member go; then it goes by itself. */
  leave: 10_000,
} as const;

/** What happens to a member, as its state machine sees it. */
export type MembershipEvent =
  | { readonly kind: "create"; readonly run: RunState }
  | { readonly kind: "linked"; readonly peer: MemberId }
  | { readonly kind: "unlinked"; readonly peer: MemberId; readonly reason: string }
  | { readonly kind: "message"; readonly from: MemberId; readonly message: ControlMessage }
  | { readonly kind: "timer"; readonly timer: TimerName }
  /** The trainer stands still as `hold` asked. */
  | { readonly kind: "held"; readonly epoch: number; readonly standing: Standing }
  /** The trainer took in what was served. */
  | { readonly kind: "synced"; readonly epoch: number; readonly committed: number }
  | { readonly kind: "dialled"; readonly peer: MemberId; readonly problem: string | null }
  /** An all-reduce of this generation failed here. */
  | { readonly kind: "failed"; readonly epoch: number; readonly sentence: string }
  | { readonly kind: "committed"; readonly step: number }
  /** Who trains, as a member told it to a watcher. */
  | { readonly kind: "view"; readonly epoch: number; readonly members: readonly MemberId[]; readonly from: MemberId }
  /** The speeds have changed enough for new shares. */
  | { readonly kind: "rebalance" }
  /** What the person here wants. */
  | { readonly kind: "join" }
  | { readonly kind: "leave" }
  | { readonly kind: "command"; readonly run: RunState }
  /** This member is going away now. */
  | { readonly kind: "goodbye" };

/** What a member's runtime has to do, in order. */
export type Effect =
  | { readonly kind: "send"; readonly to: MemberId; readonly message: ControlMessage }
  | { readonly kind: "dial"; readonly peer: MemberId; readonly via: MemberId }
  | { readonly kind: "close"; readonly peer: MemberId; readonly reason: string }
  | { readonly kind: "setTimer"; readonly timer: TimerName; readonly milliseconds: number }
  | { readonly kind: "clearTimer"; readonly timer: TimerName }
  /** Stand still before step `boundary`, 0 meaning at once, and answer with `held`. */
  | { readonly kind: "hold"; readonly epoch: number; readonly boundary: number; readonly reason: string }
  | { readonly kind: "serve"; readonly epoch: number; readonly to: MemberId; readonly what: StateKind }
  | { readonly kind: "adopt"; readonly generation: Generation }
  /** No member any more; `problem` is null when that was wanted. */
  | { readonly kind: "released"; readonly problem: string | null }
  /** Joining failed. */
  | { readonly kind: "declined"; readonly sentence: string }
  | { readonly kind: "notice"; readonly level: "info" | "warning" | "error"; readonly sentence: string };

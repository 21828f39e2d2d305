import type { Spread } from "../statistics";
import type { EngineName } from "../training/engine";
import type { OperatorRow, Work } from "./rows";

/** Who computes a row: an engine, or the hand-written matmul. */
export type Runner = EngineName | "pinned";

export interface OperatorPlan {
  readonly rows: readonly OperatorRow[];
  readonly engines: readonly EngineName[];
  /** A row takes rounds until so much time has passed, but at least and at most so many. */
  readonly millisecondsPerRow: number;
  readonly fewestRounds: number;
  readonly mostRounds: number;
}

export interface RunnerResult {
  readonly runner: Runner;
  readonly milliseconds: Spread;
  /** Runs of a round, whose mean is one measurement. */
  readonly runsPerTurn: number;
  /** Of a run, warm. */
  readonly dispatches: number;
}

export interface OperatorResult {
  readonly row: OperatorRow;
  readonly work: Work;
  readonly runners: readonly RunnerResult[];
  /** Largest difference of any runner's value from Ringlet's (or the first's), relative to the largest value. */
  readonly largestDifference: number;
  /** Another runner's time as a multiple of Ringlet's: the rounds' ratios. */
  readonly ratios: readonly { readonly runner: Runner; readonly ratio: Spread }[];
}

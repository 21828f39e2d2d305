import type { AllReduceResult } from "../allReduce/results";
import type { Machine } from "../machine";
import type { Spread } from "../statistics";

export interface LatencyResult {
  readonly tabs: number;
  readonly bytes: number;
  /** Which one the size chooses. */
  readonly algorithm: string;
  readonly milliseconds: Spread;
  /** The same messages over bare channels. */
  readonly bareMilliseconds: Spread;
  /** The all-reduce's time as a multiple of the bare one's, by rounds. */
  readonly ratio: Spread;
}

/** CPU seconds for each 10^6 bytes that any tab sends. */
export interface CpuResult {
  readonly tabs: number;
  readonly bytes: number;
  /** The threads of the pages, in which collectives run here. */
  readonly page: number;
  /** The browser's network process, and all other threads. */
  readonly rest: number;
}

export interface OverlapResult {
  readonly peers: number;
  readonly modelBytes: number;
  readonly computeMilliseconds: number;
  readonly communicationMilliseconds: number;
  readonly stepMilliseconds: number;
  /** Beside the reduced gradients, by member; and the largest bucket. */
  readonly extraBytes: number;
  readonly largestBucketBytes: number;
}

export interface GlooResult {
  readonly torch: string;
  readonly rows: readonly { readonly peers: number; readonly bytes: number; readonly milliseconds: number }[];
}

export interface CollectivesResults {
  readonly date: string;
  readonly minutes: number;
  readonly machine: Machine;
  readonly commit: string | null;
  readonly coresUsedByOthers: number | null;
  readonly allReduce: readonly AllReduceResult[];
  readonly latency: readonly LatencyResult[];
  readonly cpu: readonly CpuResult[];
  readonly overlap: readonly OverlapResult[];
  /** Null where python3-torch isn't installed. */
  readonly gloo: GlooResult | null;
}

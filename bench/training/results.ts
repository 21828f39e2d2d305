import type { Spread } from "../statistics";
import type { DeviceCounts } from "./countDevice";
import type { EngineName } from "./engine";
import type { WorkloadName } from "./workloads";

export interface TrainingPlan {
  readonly workload: WorkloadName;
  readonly engines: readonly EngineName[];
  readonly seed: number;
  /** Steps of each engine before anything is timed; their losses are compared all the same. */
  readonly warmUpSteps: number;
  /** Times that each engine has its turn. */
  readonly rounds: number;
  readonly stepsPerTurn: number;
}

export interface EngineResult {
  readonly engine: EngineName;
  /** From the first call to the first loss, with all compilation, in a browser that has seen no kernel yet. */
  readonly firstStepMilliseconds: number;
  readonly stepMilliseconds: Spread;
  readonly stepsPerSecond: number;
  /** Of a step: until the page's thread was free again. */
  readonly pageMilliseconds: Spread;
  /** Over all of the warm-up, the model's creation included. */
  readonly warmUpCounts: DeviceCounts;
  /** Means of the timed steps. */
  readonly countsPerStep: DeviceCounts;
  /** Buffers that exist after the last step. */
  readonly liveBytes: number;
  readonly losses: readonly number[];
}

export interface TrainingResult {
  readonly workload: WorkloadName;
  readonly description: string;
  readonly multiplyAddsPerStep: number;
  /** The least bytes that a step moves (workloads.ts). */
  readonly minimumBytesPerStep: number;
  readonly parameters: number;
  readonly engines: readonly EngineResult[];
  /** Largest relative difference of any engine's loss from the first engine's over the first `comparedSteps`. */
  readonly largestLossDifference: number;
  readonly comparedSteps: number;
  /** Ringlet's steps per second as a multiple of another engine's: the rounds' ratios. Empty without Ringlet. */
  readonly ratios: readonly { readonly engine: EngineName; readonly ratio: Spread }[];
}

/** First steps in another tab of a browser that has compiled the same kernels before. */
export interface RepeatedFirstStep {
  readonly workload: WorkloadName;
  readonly engine: EngineName;
  readonly milliseconds: number;
}

// The page that trains.
import { describeAdapter } from "../adapter";
import { countDevices } from "./countDevice";
import { measureDeviceLimits } from "./deviceLimits";
import type { EngineName } from "./engine";
import type { TrainingPlan, TrainingResult } from "./results";
import { firstStep, train } from "./train";
import type { WorkloadName } from "./workloads";

countDevices();

declare global {
  interface Window {
    trainingBench: {
      describeAdapter: typeof describeAdapter;
      measureDeviceLimits: typeof measureDeviceLimits;
      train(plan: TrainingPlan): Promise<TrainingResult>;
      firstStep(engine: EngineName, workload: WorkloadName, seed: number): Promise<number>;
    };
    /** Set by the program that drives this page. */
    reportProgress(text: string): Promise<void>;
  }
}

window.trainingBench = {
  describeAdapter,
  measureDeviceLimits,
  firstStep: (engine, workload, seed) => firstStep(engine, workload, seed, location.origin),
  train: (plan) => train(plan, location.origin, (text) => void window.reportProgress(`${plan.workload}: ${text}`)),
};

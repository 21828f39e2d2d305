import type { Batch } from "./batches";
import type { ParameterValues, WorkloadName } from "./workloads";

export const engineNames = ["ringlet", "tensorflow", "jax"] as const;
export type EngineName = (typeof engineNames)[number];

/** A model in training on one engine. */
export interface Training {
  /**
   * One whole step: upload of the batch, forward, mean cross-entropy, backward, Adam's update. Resolves to the loss once
   * it is read back, which every engine does on every step.
   */
  step(batch: Batch): Promise<number>;
  /** The device it computes on: a step has ended when its queue is empty, the update included. */
  readonly device: GPUDevice;
}

/** How an engine is started; each engine's module exports one. */
export type StartTraining = (workload: WorkloadName, initial: ParameterValues) => Promise<Training>;

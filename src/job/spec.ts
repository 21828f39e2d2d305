import type { OptimizerSpec } from "../optim/spec";

export const recipeNames = ["mnist"] as const;
export const modelNames = ["cnn", "mlp"] as const;
export type RecipeName = (typeof recipeNames)[number];
export type ModelName = (typeof modelNames)[number];

/** Everything that decides a job's loss curve; plain JSON. */
export interface JobSpec {
  readonly version: 1;
  readonly recipe: RecipeName;
  readonly model: ModelName;
  /** Samples of a global batch, shared out among the members. */
  readonly batch: number;
  readonly steps: number;
  readonly seed: number;
  readonly optimizer: OptimizerSpec;
  /** Validate after every so many steps, and at the end; 0 validates at the end only. */
  readonly validateEvery: number;
}

/** What every member agrees on, and what the handshake proves: its SHA-256 is part of each proof. */
export interface Manifest {
  readonly protocol: 1;
  readonly job: string;
  /** The name of whoever made the job, as shown to people that open the link. */
  readonly maker: string;
  readonly spec: JobSpec;
  /** Float32 elements of the flat weights, padding included. No received length may exceed what follows from it. */
  readonly elements: number;
}

import type { JobSpec } from "../job/spec";

/** "ringlet-mnist-cnn-3f9a12bc-step400": what a download is called, without its ending. */
const stem = (spec: JobSpec, job: string, step: number): string =>
  `ringlet-${spec.recipe}-${spec.model}-${job.replace(/[^A-Za-z0-9]/g, "").slice(0, 8)}-step${step}`;

export const weightsFileName = (spec: JobSpec, job: string, step: number): string =>
  `${stem(spec, job, step)}.safetensors`;

export const metricsFileName = (spec: JobSpec, job: string, step: number): string => `${stem(spec, job, step)}.csv`;

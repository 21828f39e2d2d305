import type { Prediction } from "../job/replica";
import type { JobAuditLine, JobResult } from "../job/result";
import type { GpuDescription, JobSnapshot } from "../job/snapshot";
import type { JobSpec } from "../job/spec";

/** What a link carries: `?job=ID#SECRET`; the secret (128 bits, base64url) never reaches a server. */
export interface JobAddress {
  readonly job: string;
  readonly secret: string;
}

export type GpuStatus =
  | { readonly kind: "available"; readonly gpu: GpuDescription }
  /** `message` says why there is no WebGPU and what to do about it. */
  | { readonly kind: "unavailable"; readonly message: string };

/**
 * What the page calls in its worker, over Comlink. One worker serves one job at a time. Every rejection's message is a
 * sentence for the person.
 */
export interface RingletWorker {
  gpu(): Promise<GpuStatus>;
  /** Makes a job and trains it here, from the moment that `waitFor` members (default 1: at once) are in. */
  create(spec: JobSpec, name: string, options?: { readonly waitFor: number }): Promise<JobAddress>;
  /**
   * Connects to a running job to watch it. Rejects when the secret is missing or wrong, or when nobody runs the job
   * any more (within 10 seconds).
   */
  open(address: JobAddress, name: string): Promise<void>;
  /** From watching to training. */
  join(): Promise<void>;
  leave(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
  /** `callback` gets a snapshot now, at every change of phase or members, and about four times a second. */
  subscribe(callback: (snapshot: JobSnapshot) => void): Promise<void>;
  /** The current guesses for a handful of validation digits. */
  predictions(): Promise<readonly Prediction[]>;
  /** Safetensors with PyTorch's names. */
  weights(): Promise<Uint8Array<ArrayBuffer>>;
  /** CSV: step, loss, validation loss, validation accuracy, members, milliseconds. */
  metricsCsv(): Promise<string>;
  result(): Promise<JobResult>;
  audit(): Promise<readonly JobAuditLine[]>;
}

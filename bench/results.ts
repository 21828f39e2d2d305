import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { AllReduceResult } from "./allReduce/results";
import type { FirefoxResult } from "./firefox";
import type { Machine } from "./machine";
import type { AttentionMemory } from "./operators/attentionMemory";
import type { OperatorResult } from "./operators/results";
import type { DeviceLimits } from "./training/deviceLimits";
import type { BrowserDescription } from "./training/measure";
import type { RepeatedFirstStep, TrainingResult } from "./training/results";

/** bench/results.json. Times are in milliseconds, sizes in bytes, unless a name says otherwise. */
export interface BenchResults {
  /** When the run began, ISO 8601. */
  readonly date: string;
  readonly minutes: number;
  readonly machine: Machine;
  /** Cores that other programs kept busy meanwhile, on average; null where that can't be told. */
  readonly coresUsedByOthers: number | null;
  readonly browser: BrowserDescription;
  readonly versions: Versions;
  readonly limits: DeviceLimits;
  readonly operators: readonly OperatorResult[];
  readonly training: readonly TrainingResult[];
  readonly firstStepsAgain: readonly RepeatedFirstStep[];
  readonly attentionMemory: readonly AttentionMemory[];
  /** Null where no Firefox is installed. */
  readonly firefox: FirefoxResult | null;
  readonly allReduce: readonly AllReduceResult[];
}

export interface Versions {
  readonly ringlet: string;
  /** The commit that was checked out; null outside of a repository. */
  readonly commit: string | null;
  readonly tensorflow: string;
  readonly jax: string;
}

export function readVersions(): Versions {
  return {
    ringlet: versionIn("package.json"),
    commit: checkedOutCommit(),
    tensorflow: versionIn("node_modules/@tensorflow/tfjs-backend-webgpu/package.json"),
    jax: versionIn("node_modules/@jax-js/jax/package.json"),
  };
}

function versionIn(file: string): string {
  const content: unknown = JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), "utf8"));
  if (typeof content !== "object" || content === null || !("version" in content))
    throw new Error(`${file} has no version.`);
  return String(content.version);
}

function checkedOutCommit(): string | null {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return null;
  }
}

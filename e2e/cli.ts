import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const entry = resolve("dist/cli/ringlet.js");

/** The built command line as a child process. */
export function startRinglet(args: readonly string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [entry, ...args], { env: { ...process.env, FORCE_COLOR: "0" } });
}

/** Runs `ringlet ARGS` to its end. */
export function ringlet(...args: string[]): Promise<Finished> {
  const child = startRinglet(args);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  return new Promise((done) => child.on("close", (code) => done({ code, stdout, stderr })));
}

export interface TrainResult {
  readonly recipe: string;
  readonly steps: number;
  readonly losses: number[];
  readonly validation: { readonly loss: number; readonly accuracy: number };
  readonly members: {
    readonly id: string;
    readonly rank: number;
    readonly weightsHash: string;
    readonly bytesSent: number;
    readonly bytesReceived: number;
    readonly gradientBytesSent: number;
    readonly linkBytesSent: number;
    readonly samples: number;
  }[];
  readonly samplesPerSecond: number;
  readonly stepMilliseconds: { readonly median: number; readonly p95: number };
}

export interface AuditLine {
  readonly step: number;
  readonly member: string;
  readonly rank: number;
  readonly samples: number[];
}

/** Runs `ringlet train mnist ARGS` and reads what it wrote. */
export async function train(...args: string[]): Promise<{ result: TrainResult; audit: AuditLine[] }> {
  const folder = await mkdtemp(join(tmpdir(), "ringlet-e2e-"));
  try {
    const json = join(folder, "out.json");
    const audit = join(folder, "audit.jsonl");
    const finished = await ringlet("train", "mnist", ...args, "--json", json, "--audit", audit);
    if (finished.code !== 0) throw new Error(`ringlet train ended with ${finished.code}:\n${finished.stderr}`);
    const lines = (await readFile(audit, "utf8")).trim().split("\n");
    return { result: JSON.parse(await readFile(json, "utf8")), audit: lines.map((line) => JSON.parse(line)) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

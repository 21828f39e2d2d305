// Operators one by one: all engines in one place, each on a GPU device of its own, in turns.
import { seededRandom } from "../../src/base/seededRandom";
import { finished } from "../finished";
import { spread } from "../statistics";
import { deviceCounts } from "../training/countDevice";
import type { EngineName } from "../training/engine";
import type { Inputs, OperatorEngine, Prepared, StartOperators } from "./engine";
import { isPinnedShape, startPinnedMatmul } from "./pinnedMatmul";
import type { OperatorPlan, OperatorResult, Runner, RunnerResult } from "./results";
import { inputShapes, type Operation, type OperatorRow, sizeOf, workOf } from "./rows";

const engines: Readonly<Record<EngineName, () => Promise<StartOperators>>> = {
  ringlet: async () => (await import("./ringlet")).startRinglet,
  tensorflow: async () => (await import("./tensorflow")).startTensorflow,
  jax: async () => (await import("./jax")).startJax,
};

/** Rounding differs with the order of sums; another computation shows at once. Relative to the largest value. */
const tolerance = 1e-4;
/** A turn takes about so long at least, so that one submit's overhead doesn't decide. */
const turnMilliseconds = 40;
const mostRunsPerTurn = 64;

class Contestant {
  readonly turns: number[] = [];
  #runs = 1;
  #dispatches = 0;

  constructor(
    readonly runner: Runner,
    readonly device: GPUDevice,
    readonly prepared: Prepared,
  ) {}

  /** Compiles, and finds how many runs make a turn. */
  async warmUp(): Promise<void> {
    await this.#milliseconds(1);
    const before = deviceCounts().dispatches;
    const once = await this.#milliseconds(1);
    this.#dispatches = deviceCounts().dispatches - before;
    this.#runs = Math.max(1, Math.min(mostRunsPerTurn, Math.ceil(turnMilliseconds / once)));
    if (this.#runs > 1) await this.#milliseconds(this.#runs);
  }

  async turn(): Promise<void> {
    this.turns.push(await this.#milliseconds(this.#runs));
  }

  result(): RunnerResult {
    const { runner, turns } = this;
    return { runner, milliseconds: spread(turns), runsPerTurn: this.#runs, dispatches: this.#dispatches };
  }

  /** Of one run, out of so many. */
  async #milliseconds(runs: number): Promise<number> {
    const start = performance.now();
    for (let run = 0; run < runs; run += 1) await this.prepared.run();
    await finished(this.device);
    return (performance.now() - start) / runs;
  }
}

async function pinnedFor(operation: Operation, inputs: Inputs, device: GPUDevice): Promise<Contestant | null> {
  if (operation.kind !== "matmul") return null;
  const { layout, m, n, k } = operation;
  if (!isPinnedShape(m, n, k)) return null;
  return new Contestant("pinned", device, await startPinnedMatmul(layout, [m, n, k], inputs, device));
}

async function measureRow(
  row: OperatorRow,
  started: readonly (readonly [EngineName, OperatorEngine])[],
  device: GPUDevice,
  plan: OperatorPlan,
): Promise<OperatorResult> {
  const { operation } = row;
  const random = seededRandom(3);
  const inputs = inputShapes(operation).map((shape) =>
    Float32Array.from({ length: sizeOf(shape) }, () => 2 * random() - 1),
  );
  const contestants = started.map(
    ([name, engine]) => new Contestant(name, engine.device, engine.prepare(operation, inputs)),
  );
  const pinned = await pinnedFor(operation, inputs, device);
  if (pinned) contestants.push(pinned);
  for (const contestant of contestants) await contestant.warmUp();
  const largestDifference = await compare(row, contestants);
  const start = performance.now();
  for (let round = 0; round < plan.mostRounds; round += 1) {
    if (round >= plan.fewestRounds && performance.now() - start > plan.millisecondsPerRow) break;
    for (const contestant of contestants) await contestant.turn();
  }
  for (const { prepared } of contestants) prepared.dispose();
  const [first] = contestants;
  return {
    row,
    work: workOf(operation),
    runners: contestants.map((contestant) => contestant.result()),
    largestDifference,
    ratios: contestants
      .filter((contestant) => contestant !== first && first!.runner === "ringlet")
      .map(({ runner, turns }) => ({ runner, ratio: spread(turns.map((time, i) => time / first!.turns[i]!)) })),
  };
}

async function compare(row: OperatorRow, contestants: readonly Contestant[]): Promise<number> {
  const [reference, ...others] = contestants;
  const expected = await reference!.prepared.values();
  const scale = expected.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
  let largest = 0;
  for (const { runner, prepared } of others) {
    const values = await prepared.values();
    let difference = values.length === expected.length ? 0 : Number.POSITIVE_INFINITY;
    for (const [i, value] of values.entries()) difference = Math.max(difference, Math.abs(value - expected[i]!));
    if (!(difference / scale <= tolerance))
      throw new Error(
        `${runner} computes another ${row.name} than ${reference!.runner}: the values differ by ${difference}, of at most ${scale}.`,
      );
    largest = Math.max(largest, difference / scale);
  }
  return largest;
}

export async function measureRows(plan: OperatorPlan, progress: (text: string) => void): Promise<OperatorResult[]> {
  const started: [EngineName, OperatorEngine][] = [];
  for (const name of plan.engines) {
    const start = await engines[name]();
    started.push([name, await start()]);
  }
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("WebGPU has no adapter here.");
  const device = await adapter.requestDevice();
  const results: OperatorResult[] = [];
  for (const row of plan.rows) {
    progress(`operators: ${row.name}`);
    results.push(await measureRow(row, started, device, plan));
  }
  return results;
}

/**
 * Nanoseconds a parameter that a step of each offloaded optimizer takes, median and spread of many:
 * `npx tsx bench/optimizers/offloaded.ts`. The aim is at most 2 for AdamW.
 */
import { OffloadedOptimizer } from "../../src/optim/offloaded";
import { optimizerNames, parseOptimizerSpec } from "../../src/optim/spec";

const length = 1_000_000;
const rounds = 25;

export interface OffloadedResult {
  readonly name: string;
  /** Sorted. */
  readonly nanosecondsPerParameter: readonly number[];
}

/** Measures in turn, so that what else the machine does falls on all alike. CPU time, as it isn't alone. */
export function measureOffloaded(): OffloadedResult[] {
  const values = (scale: number) => Float32Array.from({ length }, (_, i) => Math.sin(i) * scale);
  const entries = optimizerNames.map((name) => ({
    name,
    optimizer: new OffloadedOptimizer(parseOptimizerSpec({ name }), length),
    weights: values(1),
    times: [] as number[],
  }));
  const gradients = values(0.01);
  for (let round = 0; round < rounds; round++)
    for (const { optimizer, weights, times } of entries) {
      const before = process.cpuUsage();
      optimizer.step(weights, gradients);
      const { user, system } = process.cpuUsage(before);
      times.push((1000 * (user + system)) / length);
    }
  return entries.map(({ name, times }) => ({ name, nanosecondsPerParameter: times.sort((a, b) => a - b) }));
}

for (const { name, nanosecondsPerParameter: times } of measureOffloaded()) {
  const at = (part: number) => times[Math.floor((times.length - 1) * part)]?.toFixed(2);
  console.log(`${name.padEnd(9)} ${at(0.5)} ns (${at(0.1)} to ${at(0.9)})`);
}

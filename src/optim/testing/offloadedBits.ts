import { OffloadedOptimizer } from "../offloaded";
import { optimizerNames, parseOptimizerSpec } from "../spec";

/** Values in (-2, 2) of all magnitudes, from integers alone, so that they are the same everywhere. */
function values(length: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 31 - 1) * 2 ** -(state % 23);
  });
}

/**
 * The FNV-1a hash of weights and state after 20 steps of every offloaded optimizer. A test in each of Node, Chromium and
 * Firefox expects the same number: replicas of a job live in all three.
 */
export function hashOfOffloadedSteps(): string {
  let hash = 0x811c9dc5;
  for (const name of optimizerNames) {
    const length = 1001;
    const weights = values(length, 1);
    const optimizer = new OffloadedOptimizer(parseOptimizerSpec({ name, weightDecay: 0.01 }), length);
    for (let step = 1; step <= 20; step++) optimizer.step(weights, values(length, 1 + step), 0.01 / step);
    for (const array of [weights, ...optimizer.state()])
      for (const byte of new Uint8Array(array.slice().buffer)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash.toString(16);
}

export const expectedHash = "357b5dfe";

import type { ProcessGroup } from "../../src/distributed/processGroup";

/** All-reduces one after another. */
export interface GroupTurn {
  readonly bytes: number;
  readonly repetitions: number;
}

/** @returns milliseconds of one all-reduce. @throws Error where a result is wrong. */
export async function runGroupTurn(group: ProcessGroup, { bytes, repetitions }: GroupTurn): Promise<number> {
  const values = new Float32Array(bytes / 4).fill(1);
  await group.barrier().wait();
  const start = performance.now();
  for (let repetition = 0; repetition < repetitions; repetition += 1) await group.allReduce(values).wait();
  const milliseconds = (performance.now() - start) / repetitions;
  const [got, expected] = [values.at(-1), group.worldSize ** repetitions];
  if (got !== expected) throw new Error(`The all-reduce is wrong: ${got}, not ${expected}.`);
  return milliseconds;
}

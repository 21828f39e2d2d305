import type { Operation } from "./rows";

export type Inputs = readonly Float32Array<ArrayBuffer>[];

/** An operation with its inputs on an engine's device. */
export interface Prepared {
  /** Computes it once; what comes of it is freed at the next call. Resolves when the work is handed to the device. */
  run(): void | Promise<void>;
  /** The last results, in the order and layout that rows.ts says, one after the other. */
  values(): Promise<Float32Array>;
  dispose(): void;
}

export interface OperatorEngine {
  readonly device: GPUDevice;
  prepare(operation: Operation, inputs: Inputs): Prepared;
}

export type StartOperators = () => Promise<OperatorEngine>;

/** Arrays one after the other. */
export function joined(arrays: readonly ArrayLike<number>[]): Float32Array {
  const all = new Float32Array(arrays.reduce((total, { length }) => total + length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

import { PhiloxStream } from "../base/philox";
import type { BucketEntry } from "./buckets";
import { allReduceHook, BucketStates, type CommHook, type GradBucket, remainder } from "./commHooks";

export interface PowerSgdOptions {
  /** The rank of the approximation: higher is nearer, and sends more. Default: 1. */
  readonly matrixApproximationRank?: number;
  /** How many first steps are all-reduced as they are. Default: 1000. */
  readonly startPowerSgdIteration?: number;
  /** Gradients are approximated where that sends this many times fewer values. Default: 2. */
  readonly minCompressionRate?: number;
  /** Whether what the approximation left out is added to the next step's gradients. Default: true. */
  readonly useErrorFeedback?: boolean;
  /** Whether a step begins with the last one's right factors. Default: true. */
  readonly warmStart?: boolean;
  /** The first right factors follow from it. Default: 0. */
  readonly randomSeed?: number;
}

/** A parameter's gradient as a matrix of rows x columns, and its right factor Q, columns x rank, row-major. */
interface Matrix {
  readonly entry: BucketEntry;
  readonly rows: number;
  readonly columns: number;
  readonly rank: number;
  readonly q: Float32Array<ArrayBuffer>;
  readonly pOffset: number;
}

interface PowerSgdState {
  steps: number;
  /** Whether the right factors are a past step's. */
  isWarm: boolean;
  readonly matrices: readonly Matrix[];
  readonly plain: readonly BucketEntry[];
  readonly plainValues: Float32Array<ArrayBuffer>;
  /** All left factors P, and all right factors Q, one after another. */
  readonly p: Float32Array<ArrayBuffer>;
  readonly q: Float32Array<ArrayBuffer>;
  readonly residual: Float32Array<ArrayBuffer> | null;
}

/**
 * PowerSGD (Vogels, Karimireddy and Jaggi 2019), as torch's powerSGD_hook: a gradient M is sent as P Qᵀ of low rank, found by one step of the
 * power iteration. P = sum of M Q, orthogonalised; Q = sum of Mᵀ P. What is small or has one dimension travels as it is.
 */
export function powerSgdHook(options: PowerSgdOptions = {}): CommHook {
  const { matrixApproximationRank = 1, startPowerSgdIteration = 1000, warmStart = true, randomSeed = 0 } = options;
  if (!Number.isInteger(matrixApproximationRank) || matrixApproximationRank < 1)
    throw new RangeError(`powerSgdHook: the rank is ${matrixApproximationRank}; it must be an integer from 1.`);
  const states = new BucketStates((bucket) => makeState(bucket, options, matrixApproximationRank));
  return async (bucket, group) => {
    const { gradients } = bucket;
    const state = states.of(bucket, group);
    const step = state.steps++;
    if (step < startPowerSgdIteration) {
      await allReduceHook(bucket, group);
      return;
    }
    const { matrices, plain, plainValues, p, q, residual } = state;
    if (residual) for (let i = 0; i < gradients.length; i += 1) gradients[i] = gradients[i]! + residual[i]!;
    if (!state.isWarm || !warmStart) fillRandom(q, new PhiloxStream(randomSeed, [bucket.index, step]));
    const values = matrices.map(({ entry }) => gradients.subarray(entry.offset, entry.offset + entry.length));

    let at = 0;
    for (const { offset, length } of plain) {
      plainValues.set(gradients.subarray(offset, offset + length), at);
      at += length;
    }
    await group.allReduce(plainValues).wait();
    for (const [i, matrix] of matrices.entries()) {
      orthogonalize(matrix.q, matrix.columns, matrix.rank);
      multiply(values[i]!, matrix, p);
    }
    await group.allReduce(p).wait();
    for (const [i, matrix] of matrices.entries()) {
      orthogonalize(p.subarray(matrix.pOffset, matrix.pOffset + matrix.rows * matrix.rank), matrix.rows, matrix.rank);
      multiplyTransposed(values[i]!, matrix, p);
    }
    // What this rank's own part of Q stands for is sent; the rest is left over.
    if (residual)
      for (const [i, matrix] of matrices.entries()) {
        const own = values[i]!;
        const { entry, columns } = matrix;
        for (let index = 0; index < entry.length; index += 1)
          residual[entry.offset + index] = remainder(
            own[index]!,
            approximated(matrix, p, Math.floor(index / columns), index % columns),
          );
      }
    await group.allReduce(q).wait();
    state.isWarm = q.every(Number.isFinite);
    for (const [i, matrix] of matrices.entries()) {
      const own = values[i]!;
      const { rows, columns } = matrix;
      for (let row = 0; row < rows; row += 1)
        for (let column = 0; column < columns; column += 1)
          own[row * columns + column] = approximated(matrix, p, row, column);
    }
    at = 0;
    for (const { offset, length } of plain) {
      gradients.set(plainValues.subarray(at, at + length), offset);
      at += length;
    }
  };
}

function makeState(
  { gradients, entries }: GradBucket,
  { minCompressionRate = 2, useErrorFeedback = true }: PowerSgdOptions,
  approximationRank: number,
): PowerSgdState {
  const shapes = entries.map((entry) => {
    const rows = entry.shape[0] ?? 1;
    const columns = entry.length / Math.max(1, rows);
    const rank = Math.min(rows, columns, approximationRank);
    const isWorthIt =
      entry.shape.length > 1 && entry.length > 0 && (rows + columns) * rank * minCompressionRate < entry.length;
    return { entry, rows, columns, rank, isWorthIt };
  });
  const large = shapes.filter(({ isWorthIt }) => isWorthIt);
  const plain = shapes.flatMap(({ entry, isWorthIt }) => (isWorthIt ? [] : [entry]));
  const q = new Float32Array(large.reduce((sum, { columns, rank }) => sum + columns * rank, 0));
  let [pOffset, qOffset] = [0, 0];
  const matrices = large.map(({ entry, rows, columns, rank }): Matrix => {
    const own = { entry, rows, columns, rank, q: q.subarray(qOffset, qOffset + columns * rank), pOffset };
    pOffset += rows * rank;
    qOffset += columns * rank;
    return own;
  });
  return {
    steps: 0,
    isWarm: false,
    matrices,
    plain,
    plainValues: new Float32Array(plain.reduce((sum, { length }) => sum + length, 0)),
    p: new Float32Array(pOffset),
    q,
    residual: useErrorFeedback ? new Float32Array(gradients.length) : null,
  };
}

/** P = M Q. */
function multiply(m: Float32Array, { rows, columns, rank, q, pOffset }: Matrix, p: Float32Array): void {
  for (let row = 0; row < rows; row += 1)
    for (let k = 0; k < rank; k += 1) {
      let sum = 0;
      for (let column = 0; column < columns; column += 1) sum += m[row * columns + column]! * q[column * rank + k]!;
      p[pOffset + row * rank + k] = sum;
    }
}

/** Q = Mᵀ P. */
function multiplyTransposed(m: Float32Array, { rows, columns, rank, q, pOffset }: Matrix, p: Float32Array): void {
  q.fill(0);
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1)
      for (let k = 0; k < rank; k += 1)
        q[column * rank + k] = q[column * rank + k]! + m[row * columns + column]! * p[pOffset + row * rank + k]!;
}

/** An element of P Qᵀ. */
function approximated({ rank, q, pOffset }: Matrix, p: Float32Array, row: number, column: number): number {
  let sum = 0;
  for (let k = 0; k < rank; k += 1) sum += p[pOffset + row * rank + k]! * q[column * rank + k]!;
  return sum;
}

/** Makes the columns of a matrix orthonormal, by Gram and Schmidt's method; all ranks get the same bits. */
function orthogonalize(matrix: Float32Array, rows: number, columns: number): void {
  for (let column = 0; column < columns; column += 1) {
    for (let before = 0; before < column; before += 1) {
      let dot = 0;
      for (let row = 0; row < rows; row += 1) dot += matrix[row * columns + column]! * matrix[row * columns + before]!;
      for (let row = 0; row < rows; row += 1)
        matrix[row * columns + column] = matrix[row * columns + column]! - dot * matrix[row * columns + before]!;
    }
    let squares = 0;
    for (let row = 0; row < rows; row += 1)
      squares += matrix[row * columns + column]! * matrix[row * columns + column]!;
    // A column of zeros stays one.
    const norm = Math.sqrt(squares);
    if (norm === 0) continue;
    for (let row = 0; row < rows; row += 1) matrix[row * columns + column] = matrix[row * columns + column]! / norm;
  }
}

/** Numbers between -1 and 1 do for the first right factors: the iteration only needs a direction. */
function fillRandom(q: Float32Array, stream: PhiloxStream): void {
  for (let i = 0; i < q.length; i += 1) q[i] = 2 * stream.uniform(i) - 1;
}

import { messageOf } from "../base/messageOf";
import type { Ring } from "../distributed/ring";
import type { Work } from "../distributed/work";

/** Float32 elements of a bucket: 1 MiB, so that several are on the wire at once. */
const bucketLength = 262_144;

/** The gradients of one step, and what they are cut into for the ring. */
export interface GradientSlot {
  readonly values: Float32Array<ArrayBuffer>;
  /** In reverse order, as a backward pass finishes them. */
  readonly buckets: readonly Float32Array<ArrayBuffer>[];
  /** The step whose reduced gradients these are; -1 while they aren't. */
  reducedStep: number;
}

export function makeSlot(values: Float32Array<ArrayBuffer>): GradientSlot {
  const buckets: Float32Array<ArrayBuffer>[] = [];
  for (let end = values.length; end > 0; end -= bucketLength)
    buckets.push(values.subarray(Math.max(0, end - bucketLength), end));
  return { values, buckets, reducedStep: -1 };
}

/** Waits for all, so that the data is free when this throws, and aborts the others when one fails. */
export async function reduceAll(ring: Ring, works: readonly Work[]): Promise<void> {
  const outcomes = works.map((work) =>
    work.wait().catch((error: unknown) => {
      ring.abort(messageOf(error));
    }),
  );
  await Promise.all(outcomes);
  const failed = works.find(({ exception }) => exception !== null);
  if (failed?.exception) throw failed.exception;
}

/** x - x is 0 for finite numbers and NaN for all others. */
export function allFinite(values: Float32Array): boolean {
  let sum = 0;
  for (let index = 0; index < values.length; index += 1) sum += values[index]! - values[index]!;
  return sum === 0;
}

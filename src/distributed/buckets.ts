import type { ParameterLayout } from "../tensor";

/** One parameter's gradient in a bucket. */
export interface BucketEntry {
  readonly name: string;
  readonly shape: readonly number[];
  /** Its first element in the bucket. */
  readonly offset: number;
  readonly length: number;
}

/** A run of parameters whose gradients travel together: elements [from, to) of the flat gradients. */
export interface BucketRange {
  readonly index: number;
  readonly from: number;
  readonly to: number;
  readonly entries: readonly BucketEntry[];
}

const bytesPerElement = 4;
const bytesPerMb = 2 ** 20;

/**
 * Cuts a layout into buckets, each full once it has reached its size, as torch's DistributedDataParallel does. The first one is small, so
 * that the network gets to work early.
 * @param capMb the size of a bucket in MB (2^20 bytes).
 * @param firstCapMb the size of the first.
 */
export function bucketRanges({ entries, length }: ParameterLayout, capMb: number, firstCapMb: number): BucketRange[] {
  const buckets: BucketRange[] = [];
  let from = 0;
  let own: BucketEntry[] = [];
  for (const [index, { name, shape, offset, length: count }] of entries.entries()) {
    own.push({ name, shape, offset: offset - from, length: count });
    const to = entries[index + 1]?.offset ?? length;
    const cap = buckets.length === 0 ? Math.min(firstCapMb, capMb) : capMb;
    if (to < length && (to - from) * bytesPerElement < cap * bytesPerMb) continue;
    buckets.push({ index: buckets.length, from, to, entries: own });
    from = to;
    own = [];
  }
  return buckets;
}

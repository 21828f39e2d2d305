/** A contiguous part of a whole: items [from, from + count). */
export interface Share {
  readonly from: number;
  readonly count: number;
}

/** Shares of a batch are multiples of so many samples where the batch allows it: the smallest micro-batch. */
export const shareUnit = 16;

/** Sizes of micro-batches, which is all that plans depend on. */
export const microBatchSizes = [256, 128, 64, 32, 16] as const;

/**
 * Cuts a whole into one share for each weight, in order, without gaps or overlaps. A share may be empty.
 * Shares are multiples of `unit`, except that the last one that isn't empty takes what is left over; where the whole has
 * fewer units than there are members, units get smaller, to 1 in the end.
 * @param weights at least one, each a finite number of at least 0; all 0 counts as all equal.
 */
export function shareOut(whole: number, weights: readonly number[], unit: number = shareUnit): Share[] {
  if (weights.length === 0 || weights.some((weight) => !(weight >= 0) || weight === Number.POSITIVE_INFINITY))
    throw new RangeError(`Shares need weights of at least 0; they are [${weights.join(", ")}].`);
  let size = unit;
  while (size > 1 && whole < size * weights.length) size = Math.ceil(size / 2);
  const units = Math.floor(whole / size);
  const counts = apportion(units, weights).map((count) => count * size);
  const rest = whole - units * size;
  const last = Math.max(
    0,
    counts.findLastIndex((count) => count > 0),
  );
  counts[last] = counts[last]! + rest;
  let from = 0;
  return counts.map((count) => {
    const share = { from, count };
    from += count;
    return share;
  });
}

/** Whole numbers in proportion to the weights, by largest remainder; ties go to the first. */
function apportion(units: number, weights: readonly number[]): number[] {
  // Divided by the largest first, so that the sum of huge weights is finite.
  const largest = Math.max(...weights);
  const relative = largest > 0 ? weights.map((weight) => weight / largest) : weights.map(() => 1);
  const total = relative.reduce((sum, weight) => sum + weight, 0);
  const exact = relative.map((weight) => (units * weight) / total);
  const counts = exact.map(Math.floor);
  const order = exact
    .map((value, index) => ({ index, remainder: value - Math.floor(value) }))
    .sort((a, b) => b.remainder - a.remainder || a.index - b.index);
  let left = units - counts.reduce((sum, count) => sum + count, 0);
  for (const { index } of order) {
    if (left === 0) break;
    if (relative[index] === 0) continue;
    counts[index] = counts[index]! + 1;
    left -= 1;
  }
  return counts;
}

/**
 * By which part a step would get faster if the shares followed the speeds; 0 where a speed isn't known.
 * @param counts the shares as they are.
 * @param speeds of the same members, in samples per second; 0 for unknown.
 */
export function gainOfSharing(counts: readonly number[], speeds: readonly number[]): number {
  if (speeds.some((speed) => !(speed > 0))) return 0;
  const slowest = (shares: readonly number[]) => Math.max(...shares.map((count, rank) => count / speeds[rank]!));
  const whole = counts.reduce((sum, count) => sum + count, 0);
  return 1 - slowest(shareOut(whole, speeds).map(({ count }) => count)) / slowest(counts);
}

/** A run of a plan for `size` rows of which the first `rows` are real and the others masked. */
export interface MicroBatch {
  readonly size: number;
  readonly rows: number;
}

/**
 * Cuts a share into micro-batches, largest first; the last one may be short and masked. One larger micro-batch is taken
 * instead of several small ones where that wastes at most an eighth, or no more than they would.
 */
export function splitIntoMicroBatches(count: number, sizes: readonly number[] = microBatchSizes): MicroBatch[] {
  const smallest = sizes[sizes.length - 1]!;
  const parts: MicroBatch[] = [];
  let left = count;
  while (left > 0) {
    const covering = sizes.findLast((size) => size >= left);
    const padded = Math.ceil(left / smallest) * smallest;
    if (covering !== undefined && covering <= Math.max(padded, left * (9 / 8))) {
      parts.push({ size: covering, rows: left });
      break;
    }
    const size = sizes.find((candidate) => candidate <= left)!;
    parts.push({ size, rows: size });
    left -= size;
  }
  return parts;
}

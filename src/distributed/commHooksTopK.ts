import { BucketStates, type CommHook } from "./commHooks";

export interface TopKHookOptions {
  /** The part of a bucket's values that each rank sends. Default: 0.01. */
  readonly ratio?: number;
  /** Whether what wasn't sent is added to the next step's gradients. Default: true. */
  readonly errorFeedback?: boolean;
}

/**
 * Each rank sends the values of the largest size in its bucket, with their places (Stich, Cordonnier and Jaggi 2018, "Sparsified SGD with
 * memory"); the result is their sum.
 */
export function topKHook({ ratio = 0.01, errorFeedback = true }: TopKHookOptions = {}): CommHook {
  if (!(ratio > 0 && ratio <= 1))
    throw new RangeError(`topKHook: the ratio is ${ratio}; it must be above 0 and at most 1.`);
  const residuals = new BucketStates(({ gradients }) => new Float32Array(gradients.length));
  return async (bucket, group) => {
    const { gradients } = bucket;
    const count = Math.ceil(ratio * gradients.length);
    const residual = errorFeedback ? residuals.of(bucket, group) : null;
    if (residual) for (let i = 0; i < gradients.length; i += 1) gradients[i] = gradients[i]! + residual[i]!;
    const places = largest(gradients, count);
    // Places and values in one message: a place's bits stand in the words before the values' bits.
    const words = new Uint32Array(2 * count);
    words.set(places);
    const values = new Float32Array(words.buffer, 4 * count);
    for (const [i, place] of places.entries()) values[i] = gradients[place]!;
    if (residual) {
      for (let i = 0; i < gradients.length; i += 1) residual[i] = gradients[i]!;
      for (const place of places) residual[place] = 0;
    }
    const all = new Uint32Array(2 * count * group.worldSize);
    await group.allGatherIntoTensor(all, words).wait();
    gradients.fill(0);
    for (let rank = 0; rank < group.worldSize; rank += 1) {
      const theirs = new Float32Array(all.buffer, 4 * count * (2 * rank + 1), count);
      for (let i = 0; i < count; i += 1) {
        const place = all[2 * rank * count + i]!;
        if (place < gradients.length) gradients[place] = gradients[place]! + theirs[i]!;
      }
    }
  };
}

/** The places of the `count` values of the largest size, ascending; NaN is the largest, and of equal ones the first are taken. */
export function largest(values: Float32Array<ArrayBuffer>, count: number): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const sizeOf = (i: number) => words[i]! & 0x7fffffff;
  // The size of the last one to take, by its upper and then its lower half: sizes of floats are ordered as their bits.
  const upper = cut(words.length, count, (i) => sizeOf(i) >>> 16);
  const lower = cut(words.length, upper.ofThese, (i) => (sizeOf(i) >>> 16 === upper.key ? sizeOf(i) & 0xffff : -1));
  const threshold = upper.key * 0x10000 + lower.key;
  const places = new Uint32Array(count);
  let equal = lower.ofThese;
  for (let i = 0, at = 0; at < count; i += 1) {
    const size = sizeOf(i);
    if (size < threshold || (size === threshold && equal-- <= 0)) continue;
    places[at++] = i;
  }
  return places;
}

/** The key of the `count`-th largest, and how many of those with that key are among the `count` largest. A key of -1 isn't counted. */
function cut(
  length: number,
  count: number,
  keyOf: (i: number) => number,
): { readonly key: number; readonly ofThese: number } {
  const histogram = new Uint32Array(0x10000);
  for (let i = 0; i < length; i += 1) {
    const key = keyOf(i);
    if (key >= 0) histogram[key] = histogram[key]! + 1;
  }
  let left = count;
  let key = histogram.length - 1;
  while (key > 0 && histogram[key]! < left) {
    left -= histogram[key]!;
    key -= 1;
  }
  return { key, ofThese: left };
}

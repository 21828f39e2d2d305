import type { ParameterLayout } from "../tensor";
import { type BucketRange, bucketRanges } from "./buckets";
import { allReduceHook, type CommHook } from "./commHooks";
import type { ProcessGroup } from "./processGroup";

/** A range of the flat gradients, and the memory in which its values are reduced, and stay. */
export interface Bucket extends BucketRange {
  readonly gradients: Float32Array<ArrayBuffer>;
}

/**
 * Buckets on their way at once. Two fill the network while one of them waits for a latency or for its values; what is
 * received and not yet passed on is then never more than twice the largest bucket.
 */
const lanes = 2;

const bytesPerMb = 2 ** 20;
const firstCapMb = 1;
const largestCapMb = 25;
/** Below this a bucket costs more latency than it hides. */
const smallestCapMb = 0.125;
/** The last bucket's way over the network comes after all of backward: a sixteenth of it is hidden by nothing. */
const bucketsAtLeast = 16;

/** PyTorch's 25 MB, or less where so few buckets would leave nothing to overlap. */
export function defaultCapMb({ length }: ParameterLayout): number {
  const wholeMb = (length * Float32Array.BYTES_PER_ELEMENT) / bytesPerMb;
  return Math.min(largestCapMb, Math.max(smallestCapMb, wholeMb / bucketsAtLeast));
}

/** Reduces the buckets of a model over all ranks, two at a time, while later ones are still being computed. */
export class BucketReducer {
  readonly buckets: readonly Bucket[];
  hook: CommHook = allReduceHook;
  /** The group's ranks once for each lane, so that the order of calls in one doesn't depend on the other. */
  readonly #groups: readonly ProcessGroup[];

  /** All ranks of the group must make theirs, in the same order among the group's duplicates. */
  constructor(group: ProcessGroup, layout: ParameterLayout, capMb: number) {
    this.#groups = Array.from({ length: lanes }, () => group.duplicate());
    this.buckets = bucketRanges(layout, capMb, firstCapMb).map((range) => ({
      ...range,
      gradients: new Float32Array(range.to - range.from),
    }));
  }

  /**
   * Starts the buckets in their order, which is the same on all ranks, each when its values are there and the one two before it is reduced.
   * @param ready by bucket: resolves when its values are in `gradients`.
   * @param weight what this rank's values count in the sum.
   * @param done takes each bucket's result.
   * @param narrowed has the values in the hook's narrow type, weighted, in place of `gradients`.
   */
  async reduce(
    ready: readonly (Promise<void> | null)[],
    weight: number,
    done: (bucket: Bucket) => void = () => {},
    narrowed: { bytesOf(index: number): Uint8Array<ArrayBuffer> } | null = null,
  ): Promise<void> {
    const running: Promise<void>[] = [];
    try {
      for (const bucket of this.buckets) {
        await ready[bucket.index];
        await running[bucket.index - lanes];
        const run = this.#run(bucket, weight, done, narrowed?.bytesOf(bucket.index) ?? null);
        // It is waited for further down, whichever fails first.
        run.catch(() => {});
        running.push(run);
      }
    } finally {
      // What still runs uses the buckets' memory.
      await Promise.allSettled(running);
    }
    await Promise.all(running);
  }

  /** Ends its groups. */
  destroy(): void {
    for (const group of this.#groups) group.destroy();
  }

  async #run(
    bucket: Bucket,
    weight: number,
    done: (bucket: Bucket) => void,
    narrowed: Uint8Array<ArrayBuffer> | null,
  ): Promise<void> {
    const { index, entries, gradients } = bucket;
    if (weight !== 1 && narrowed === null)
      for (let i = 0; i < gradients.length; i += 1) gradients[i] = gradients[i]! * weight;
    const isLast = index === this.buckets.length - 1;
    const given = { index, isLast, entries, gradients, ...(narrowed === null ? {} : { narrowed }) };
    await this.hook(given, this.#groups[index % lanes]!);
    done(bucket);
  }
}

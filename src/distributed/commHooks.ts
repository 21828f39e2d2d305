import type { NarrowType } from "../tensor";
import type { BucketEntry } from "./buckets";
import type { ProcessGroup } from "./processGroup";

/** A bucket of gradients on its way. */
export interface GradBucket {
  readonly index: number;
  readonly isLast: boolean;
  readonly entries: readonly BucketEntry[];
  /** This rank's part of the mean: its gradients, already divided. The hook replaces them by the sum over ranks. The array is the bucket's own. */
  readonly gradients: Float32Array<ArrayBuffer>;
  /** The same in the hook's narrow type, two bytes each, where the GPU rounded them; what `gradients` holds is of no use then. */
  readonly narrowed?: Uint8Array<ArrayBuffer>;
}

/**
 * Reduces a bucket over the ranks of `group`. Hooks are called for the buckets in the same order on all ranks, for the next one before the last
 * is done, each of the two with a group of its own; so a hook's collectives are to be those of its group. The values it leaves must be the
 * same to the bit on all ranks. A NaN or an infinity that a rank gives must not get lost, or a gradient scaler misses it.
 */
export interface CommHook {
  (bucket: GradBucket, group: ProcessGroup): Promise<void>;
  /** The type that gradients may be rounded to on the GPU already, so that half the bytes are read. */
  readonly narrowType?: NarrowType;
}

/** A plain all-reduce in float32: what is done without a hook. */
export const allReduceHook: CommHook = ({ gradients }, group) => group.allReduce(gradients).wait();

/** State that a hook keeps for each bucket, made when the bucket first comes; so one hook may serve several models. */
export class BucketStates<State> {
  /** By the array that a bucket has for good. */
  readonly #states = new WeakMap<Float32Array, State>();

  constructor(readonly make: (bucket: GradBucket, group: ProcessGroup) => State) {}

  of(bucket: GradBucket, group: ProcessGroup): State {
    const known = this.#states.get(bucket.gradients);
    if (known !== undefined) return known;
    const made = this.make(bucket, group);
    this.#states.set(bucket.gradients, made);
    return made;
  }
}

/** What of a value is still to be sent. What isn't finite isn't carried over: it would never go away again. */
export const remainder = (value: number, sent: number): number => {
  const left = value - sent;
  return Number.isFinite(left) ? left : 0;
};

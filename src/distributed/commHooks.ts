import type { BucketEntry } from "./buckets";
import type { ProcessGroup } from "./processGroup";

/** A bucket of gradients on its way. */
export interface GradBucket {
  readonly index: number;
  readonly isLast: boolean;
  readonly entries: readonly BucketEntry[];
  /** This rank's part of the mean: its gradients, already divided. The hook replaces them by the sum over ranks. */
  readonly gradients: Float32Array<ArrayBuffer>;
}

/**
 * Reduces a bucket. Hooks are called for one bucket after another, in the same order on all ranks, and the values they leave must be the same to
 * the bit on all ranks.
 */
export type CommHook = (bucket: GradBucket, group: ProcessGroup) => Promise<void>;

/** A plain all-reduce in float32: what is done without a hook. */
export const allReduceHook: CommHook = ({ gradients }, group) => group.allReduce(gradients).wait();

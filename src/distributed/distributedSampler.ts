import { shuffled } from "../base/shuffled";
import { getProcessGroup, isInitialized } from "./defaultGroup";

export interface DistributedSamplerOptions {
  /** How many ranks share the data set. Default: the world's size; 1 without a process group. */
  readonly numReplicas?: number;
  /** Which of them this is. Default: this rank; 0 without a process group. */
  readonly rank?: number;
  /** Whether each epoch has an order of its own. Default: true. */
  readonly shuffle?: boolean;
  /** The orders follow from it; the same on all ranks. Default: 0. */
  readonly seed?: number;
  /** Whether samples that don't go round are left out; otherwise the first ones are repeated. Default: false. */
  readonly dropLast?: boolean;
}

/**
 * This rank's samples of a data set, as torch's DistributedSampler: every rank gets as many, rank `r` the r-th of each `numReplicas` in the
 * epoch's order. Where they don't go round, the order is repeated from its beginning, as often as it takes.
 *
 *     const sampler = new DistributedSampler(60_000);
 *     for (let epoch = 0; epoch < epochs; epoch += 1) {
 *       sampler.setEpoch(epoch);
 *       for (const index of sampler) ...
 *     }
 */
export class DistributedSampler implements Iterable<number> {
  /** Samples of this rank in an epoch. */
  readonly length: number;
  readonly #size: number;
  readonly #options: Required<DistributedSamplerOptions>;
  #epoch = 0;

  /** @param dataset the data set, or its length. */
  constructor(dataset: number | { readonly length: number }, options: DistributedSamplerOptions = {}) {
    const size = typeof dataset === "number" ? dataset : dataset.length;
    const group = isInitialized() ? getProcessGroup() : { worldSize: 1, rank: 0 };
    const { numReplicas = group.worldSize, rank = group.rank, shuffle = true, seed = 0, dropLast = false } = options;
    if (!Number.isInteger(size) || size < 0)
      throw new RangeError(`DistributedSampler: the data set has ${size} samples; expected an integer from 0.`);
    if (!Number.isInteger(numReplicas) || numReplicas < 1)
      throw new RangeError(`DistributedSampler: numReplicas is ${numReplicas}; expected an integer from 1.`);
    if (!Number.isInteger(rank) || rank < 0 || rank >= numReplicas)
      throw new RangeError(`DistributedSampler: the rank is ${rank}; expected one of ${numReplicas}, from 0.`);
    this.#size = size;
    this.#options = { numReplicas, rank, shuffle, seed, dropLast };
    this.length = dropLast ? Math.floor(size / numReplicas) : Math.ceil(size / numReplicas);
  }

  /** Chooses the order of the epochs to come; without it every one has the order of epoch 0. */
  setEpoch(epoch: number): void {
    if (!Number.isInteger(epoch) || epoch < 0)
      throw new RangeError(`DistributedSampler: the epoch is ${epoch}; expected an integer from 0.`);
    this.#epoch = epoch;
  }

  *[Symbol.iterator](): Iterator<number> {
    const { numReplicas, rank, shuffle, seed } = this.#options;
    const order = shuffle ? shuffled(this.#size, seed, this.#epoch) : null;
    for (let i = 0; i < this.length; i += 1) {
      const at = (i * numReplicas + rank) % this.#size;
      yield order?.[at] ?? at;
    }
  }
}

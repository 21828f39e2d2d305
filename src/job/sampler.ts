import { shuffled } from "../base/shuffled";

/**
 * Which samples make up the global batch of each step: the data set's shuffled epochs, one after the other, cut into
 * batches. A batch may begin in one epoch and end in the next. It follows from the seed and the step alone, so every
 * member knows every batch, whoever is there.
 */
export class Sampler {
  readonly #seed: number;
  readonly #size: number;
  readonly #batch: number;
  /** The latest epochs' orders: a batch needs two at most when it is no larger than the data set. */
  readonly #orders = new Map<number, Uint32Array>();

  /**
   * @param seed an unsigned 32-bit integer.
   * @param size samples in the data set.
   * @param batch samples in a global batch.
   */
  constructor(seed: number, size: number, batch: number) {
    if (size < 1 || batch < 1) throw new RangeError(`A sampler got ${size} samples and batches of ${batch}.`);
    this.#seed = seed;
    this.#size = size;
    this.#batch = batch;
  }

  /** The indices at [from, from + count) of the global batch of `step`. */
  indices(step: number, from: number, count: number): Uint32Array<ArrayBuffer> {
    const indices = new Uint32Array(count);
    let position = step * this.#batch + from;
    let filled = 0;
    while (filled < count) {
      const epoch = Math.floor(position / this.#size);
      const offset = position - epoch * this.#size;
      const take = Math.min(count - filled, this.#size - offset);
      indices.set(this.#order(epoch).subarray(offset, offset + take), filled);
      filled += take;
      position += take;
    }
    return indices;
  }

  #order(epoch: number): Uint32Array {
    const known = this.#orders.get(epoch);
    if (known !== undefined) return known;
    const order = shuffled(this.#size, this.#seed, epoch);
    this.#orders.set(epoch, order);
    for (const other of this.#orders.keys()) if (Math.abs(other - epoch) > 1) this.#orders.delete(other);
    return order;
  }
}

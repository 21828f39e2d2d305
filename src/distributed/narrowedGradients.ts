import { copy_, mul, type NarrowType, noGrad, type Tensor, zeros } from "../tensor";
import { versionOf } from "../tensor/apply";
import type { Bucket } from "./bucketReducer";

/** A bucket's gradients rounded on the GPU, and where they are read into. */
interface Narrowed {
  readonly range: Tensor;
  readonly rounded: Tensor;
  /** The bits, two gradients in a word. */
  readonly words: Float32Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Parameters that this backward pass hasn't reached yet. */
  readonly missing: Set<Tensor>;
  readonly parameters: readonly Tensor[];
}

/**
 * Rounds buckets on the GPU as part of the backward pass that computes them, so that half the bytes are read back. Each is rounded right behind
 * its last gradient: whoever reads the buckets as they are computed gets the first ones while the rest of backward runs.
 */
export class NarrowedGradients {
  readonly #narrowed: readonly Narrowed[];
  readonly #weight: number;
  /** The gradients' version when they were last rounded; others than these mean that they have changed since. */
  #version = -1;

  /**
   * @param parameters by bucket.
   * @param weight what this rank's gradients count in the mean, applied before they are rounded.
   */
  constructor(
    buckets: readonly Bucket[],
    ranges: readonly Tensor[],
    parameters: readonly (readonly Tensor[])[],
    type: NarrowType,
    weight: number,
  ) {
    this.#weight = weight;
    this.#narrowed = buckets.map(({ index, from, to }) => {
      // A bucket's length is a multiple of 64.
      const words = new Float32Array((to - from) / 2);
      return {
        range: ranges[index]!,
        rounded: zeros([to - from], { dtype: type }).keep(),
        words,
        bytes: new Uint8Array(words.buffer),
        missing: new Set(parameters[index]),
        parameters: parameters[index]!,
      };
    });
  }

  /** To be called when a backward pass has added to a parameter's gradient. */
  reached(parameter: Tensor): void {
    for (const narrowed of this.#narrowed) {
      if (!narrowed.missing.delete(parameter) || narrowed.missing.size > 0) continue;
      for (const one of narrowed.parameters) narrowed.missing.add(one);
      this.#round(narrowed);
    }
    this.#version = this.#currentVersion();
  }

  /** What to read. Rounds all of it now, if that wasn't done with backward, or the gradients have changed since. */
  reads(): { readonly tensor: Tensor; readonly into: Float32Array }[] {
    const isComplete = this.#narrowed.every(({ missing, parameters }) => missing.size === parameters.length);
    if (!isComplete || this.#version !== this.#currentVersion()) for (const one of this.#narrowed) this.#round(one);
    this.#version = -1;
    for (const { missing, parameters } of this.#narrowed) for (const one of parameters) missing.add(one);
    return this.#narrowed.map(({ rounded, words }) => ({ tensor: rounded, into: words }));
  }

  bytesOf(index: number): Uint8Array<ArrayBuffer> {
    return this.#narrowed[index]!.bytes;
  }

  #round({ range, rounded }: Narrowed): void {
    noGrad(() => copy_(rounded, mul(range, this.#weight)));
  }

  #currentVersion(): number {
    return versionOf(this.#narrowed[0]!.range);
  }
}

import { stateLayout } from "../optim/updateRule";
import type { Frame } from "../transport/link";
import type { Offer, StateKind } from "./messages";
import { metricSlotCount } from "./replica";
import type { Validation } from "./snapshot";
import type { Manifest } from "./spec";

/** What goes from one member to another: the curves, and after them float32 arrays that depend on `what`. */
export interface TransferContents {
  readonly what: StateKind;
  readonly committed: number;
  readonly optimizerSteps: number;
  /** Skipped steps in a row. */
  readonly skips: number;
  readonly elapsedMilliseconds: number;
  readonly lossesFrom: number;
  readonly losses: ArrayLike<number>;
  readonly validations: readonly Validation[];
  /**
   * "buckets": the reduced gradients and metric sums of the last committed step. "training": weights, then the
   * optimizer's state. "history": none.
   */
  readonly arrays: readonly Float32Array[];
}

/** The lengths of a transfer's arrays, which follow from the manifest alone. */
function arrayLengths(what: StateKind, manifest: Manifest): number[] {
  const { elements, spec } = manifest;
  switch (what) {
    case "buckets":
      return [elements + metricSlotCount];
    case "training":
      return [elements, ...stateLayout(spec.optimizer, elements).map(({ length }) => length)];
    case "history":
      return [];
  }
}

/** Copies the contents into one piece, which then may be sent without care for what happens to them. */
export function packTransfer(contents: TransferContents): {
  readonly offer: Omit<Offer, "kind" | "epoch" | "hash">;
  readonly bytes: Uint8Array<ArrayBuffer>;
} {
  const { losses, validations, arrays, what, committed, optimizerSteps, skips, lossesFrom } = contents;
  const curves = new Float64Array(losses.length + 3 * validations.length);
  curves.set(losses);
  validations.forEach(({ step, loss, accuracy }, index) => {
    curves.set([step, loss, accuracy], losses.length + 3 * index);
  });
  const length = curves.byteLength + arrays.reduce((sum, array) => sum + array.byteLength, 0);
  const bytes = new Uint8Array(length);
  bytes.set(new Uint8Array(curves.buffer));
  let offset = curves.byteLength;
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset);
    offset += array.byteLength;
  }
  return {
    offer: {
      what,
      committed,
      optimizerSteps,
      skips,
      lossesFrom,
      losses: losses.length,
      validations: validations.length,
      elapsedMilliseconds: contents.elapsedMilliseconds,
      bytes: length,
    },
    bytes,
  };
}

/** Puts a transfer together again from its frames. */
export class IncomingTransfer {
  readonly offer: Offer;
  readonly #lengths: readonly number[];
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #received = 0;

  /** @throws Error with a sentence when the offer isn't one that the manifest allows; nothing is allocated then. */
  constructor(offer: Offer, manifest: Manifest) {
    const { steps } = manifest.spec;
    this.#lengths = arrayLengths(offer.what, manifest);
    const values = this.#lengths.reduce((sum, length) => sum + length, 0);
    const expected = 8 * (offer.losses + 3 * offer.validations) + 4 * values;
    if (offer.committed > steps || offer.lossesFrom + offer.losses > steps || offer.validations > steps)
      throw new Error(`A transfer of the training's ${offer.what} tells of more than the job's ${steps} steps.`);
    if (offer.bytes !== expected)
      throw new Error(
        `A transfer of the training's ${offer.what} has ${offer.bytes} bytes; by the job's manifest it has ${expected}.`,
      );
    this.offer = offer;
    this.#bytes = new Uint8Array(offer.bytes);
  }

  get complete(): boolean {
    return this.#received === this.#bytes.length;
  }
  /** To be hashed and compared with the offer's hash before the contents are used. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  /** @returns null, or a sentence on why whoever sent this is to be dropped. */
  receive(frame: Frame): string | null {
    if (frame.offset !== this.#received || frame.offset + frame.payload.length > this.#bytes.length)
      return `A transfer's frame has ${frame.payload.length} bytes at ${frame.offset}; expected up to ${this.#bytes.length - this.#received} at ${this.#received}.`;
    this.#bytes.set(frame.payload, frame.offset);
    this.#received += frame.payload.length;
    return null;
  }

  contents(): TransferContents {
    const { offer } = this;
    const curves = new Float64Array(this.#bytes.buffer, 0, offer.losses + 3 * offer.validations);
    const validations = Array.from({ length: offer.validations }, (_, index): Validation => {
      const at = offer.losses + 3 * index;
      return { step: curves[at]!, loss: curves[at + 1]!, accuracy: curves[at + 2]! };
    });
    let offset = curves.byteLength;
    const arrays = this.#lengths.map((length) => {
      const array = new Float32Array(this.#bytes.buffer, offset, length);
      offset += array.byteLength;
      return array;
    });
    return { ...offer, losses: curves.subarray(0, offer.losses), validations, arrays };
  }
}

import { fromHalf, toHalf } from "../base/float16";

/** Halves as their bits (IEEE binary16), for platforms without Float16Array. */
export class Float16Bits {
  constructor(readonly bits: Uint16Array<ArrayBuffer>) {}

  /** Rounds to the nearest half, ties to even; beyond 65,504 lies infinity. */
  static from(values: ArrayLike<number>): Float16Bits {
    return new Float16Bits(Uint16Array.from(values, toHalf));
  }

  get length(): number {
    return this.bits.length;
  }

  toFloat32(): Float32Array<ArrayBuffer> {
    return Float32Array.from(this.bits, fromHalf);
  }
}

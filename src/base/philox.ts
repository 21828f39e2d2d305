/**
 * Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random 32-bit words that
 * depend only on a 64-bit key and a 128-bit counter, so any element of any stream can be drawn alone, on any machine.
 */
export function philox4x32(counter: ArrayLike<number>, key: ArrayLike<number>, out = new Uint32Array(4)): Uint32Array {
  let c0 = counter[0]! >>> 0;
  let c1 = counter[1]! >>> 0;
  let c2 = counter[2]! >>> 0;
  let c3 = counter[3]! >>> 0;
  let k0 = key[0]! >>> 0;
  let k1 = key[1]! >>> 0;
  for (let round = 0; round < 10; round++) {
    const high0 = highWord(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0);
    const high1 = highWord(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2);
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1 >>> 0;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0 >>> 0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
  return out;
}

/** A named stream of random words under a seed: word `i` is the same whoever draws it, and in whatever order. */
export class PhiloxStream {
  private readonly key: readonly [number, number];
  private readonly counter = new Uint32Array(4);
  private readonly block = new Uint32Array(4);
  private blockIndex = -1;

  /**
   * @param seed a non-negative integer up to 2^53.
   * @param stream tells streams under one seed apart: two 32-bit words, such as (layer, step).
   */
  constructor(seed: number, stream: readonly [number, number] = [0, 0]) {
    this.key = splitSeed(seed);
    this.counter[2] = stream[0];
    this.counter[3] = stream[1];
  }

  /** Word `index` of the stream, an integer from 0 to 2^32 - 1. */
  word(index: number): number {
    const block = Math.floor(index / 4);
    if (block !== this.blockIndex) {
      this.blockIndex = block;
      this.counter[0] = block % 2 ** 32;
      this.counter[1] = Math.floor(block / 2 ** 32);
      philox4x32(this.counter, this.key, this.block);
    }
    return this.block[index % 4]!;
  }

  /** Number `index`, uniform in [0, 1) on a grid of 2^-24: exact in float32. */
  uniform(index: number): number {
    return (this.word(index) >>> 8) / 2 ** 24;
  }
}

/** A seed as Philox's two key words, low word first. */
export function splitSeed(seed: number): [number, number] {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`The seed is ${seed}; expected an integer from 0 to ${Number.MAX_SAFE_INTEGER}.`);
  return [seed % 2 ** 32, Math.floor(seed / 2 ** 32)];
}

/** The high word of a product of two 32-bit words. */
function highWord(a: number, b: number): number {
  const al = a & 0xffff;
  const ah = a >>> 16;
  const bl = b & 0xffff;
  const bh = b >>> 16;
  const middle = ah * bl + Math.floor((al * bl) / 65536);
  const carried = (middle % 65536) + al * bh;
  return (ah * bh + Math.floor(middle / 65536) + Math.floor(carried / 65536)) >>> 0;
}

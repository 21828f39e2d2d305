import { PhiloxStream } from "./philox";

/** Tells shuffles apart from what else is drawn under a seed. */
const shuffleStream = 0x5348_5546;

/** The numbers below `size` in the order of an epoch (Fisher and Yates's shuffle, in Durstenfeld's form). */
export function shuffled(size: number, seed: number, epoch: number): Uint32Array<ArrayBuffer> {
  const order = Uint32Array.from({ length: size }, (_, index) => index);
  const stream = new PhiloxStream(seed, [shuffleStream, epoch]);
  for (let last = size - 1; last > 0; last -= 1) {
    // A scaled 32-bit word: for the sizes of data sets its bias is below 2^-12, far from mattering to a shuffle.
    const other = Math.floor((stream.word(last) / 2 ** 32) * (last + 1));
    const moved = order[last]!;
    order[last] = order[other]!;
    order[other] = moved;
  }
  return order;
}

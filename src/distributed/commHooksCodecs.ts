import { fromHalf, toHalf } from "../base/float16";

/** How float32 values become bytes and, nearly, values again; the same to the bit on every machine. */
export interface Codec {
  /** Values that are encoded together, and the bytes that they become, a multiple of the alignment that views need. */
  readonly blockLength: number;
  readonly blockBytes: number;
  /** @param values a whole number of blocks. */
  encode(values: Float32Array<ArrayBuffer>, into: Uint8Array<ArrayBuffer>): void;
  decode(bytes: Uint8Array<ArrayBuffer>, into: Float32Array<ArrayBuffer>): void;
}

const halves = ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) =>
  new Uint16Array(buffer, byteOffset, byteLength / 2);

/** IEEE binary16: 11 bits of precision; above 65,504 lies infinity. */
export const float16Codec: Codec = {
  blockLength: 1,
  blockBytes: 2,
  encode(values, into) {
    const bits = halves(into);
    for (let i = 0; i < values.length; i += 1) bits[i] = toHalf(values[i]!);
  },
  decode(bytes, into) {
    const bits = halves(bytes);
    for (let i = 0; i < into.length; i += 1) into[i] = fromHalf(bits[i]!);
  },
};

/** bfloat16: float32's range with 8 bits of precision, rounded to nearest, ties to even. */
export const bfloat16Codec: Codec = {
  blockLength: 1,
  blockBytes: 2,
  encode(values, into) {
    const bits = halves(into);
    const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < words.length; i += 1) {
      const word = words[i]!;
      const isNotANumber = (word & 0x7fffffff) > 0x7f800000;
      bits[i] = isNotANumber ? 0x7fc0 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
    }
  },
  decode(bytes, into) {
    const bits = halves(bytes);
    const words = new Uint32Array(into.buffer, into.byteOffset, into.length);
    for (let i = 0; i < words.length; i += 1) words[i] = bits[i]! << 16;
  },
};

/**
 * Blocks of int8 with a float32 scale each: x is about scale * q, with scale = max|x| / 127. A block with a value that isn't finite becomes
 * all NaN.
 * @param blockLength a multiple of 4.
 */
export function int8Codec(blockLength: number): Codec {
  if (!Number.isInteger(blockLength) || blockLength < 4 || blockLength % 4 !== 0)
    throw new RangeError(`A block of int8 values has ${blockLength} of them; it must be a positive multiple of 4.`);
  const blockBytes = 4 + blockLength;
  const parts = ({ buffer, byteOffset }: Uint8Array<ArrayBuffer>, block: number) => {
    const at = byteOffset + block * blockBytes;
    return { scale: new Float32Array(buffer, at, 1), quanta: new Int8Array(buffer, at + 4, blockLength) };
  };
  return {
    blockLength,
    blockBytes,
    encode(values, into) {
      for (let block = 0; block * blockLength < values.length; block += 1) {
        const { scale, quanta } = parts(into, block);
        const from = block * blockLength;
        let largest = 0;
        for (let i = from; i < from + blockLength; i += 1) {
          const size = Math.abs(values[i]!);
          // A NaN is no larger than anything: it must be let in.
          if (!(size <= largest)) largest = size;
          if (Number.isNaN(size)) break;
        }
        const unit = Math.fround(largest / 127);
        scale[0] = Number.isFinite(unit) ? unit : Number.NaN;
        const isUsable = Number.isFinite(unit) && unit > 0;
        for (let i = 0; i < blockLength; i += 1)
          quanta[i] = isUsable ? Math.max(-127, Math.min(127, Math.round(values[from + i]! / unit))) : 0;
      }
    },
    decode(bytes, into) {
      for (let block = 0; block * blockLength < into.length; block += 1) {
        const { scale, quanta } = parts(bytes, block);
        const unit = scale[0]!;
        for (let i = 0; i < blockLength; i += 1) into[block * blockLength + i] = unit * quanta[i]!;
      }
    },
  };
}

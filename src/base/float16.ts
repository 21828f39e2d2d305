const scratch = new Float32Array(1);
const scratchBits = new Uint32Array(scratch.buffer);

/** The bits of the half (IEEE binary16) nearest to `value`, ties to even; NaN becomes the one NaN 0x7e00. */
export function toHalf(value: number): number {
  scratch[0] = value;
  const bits = scratchBits[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  // 65,520 and above round to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: a multiple of 2^-24. Adding 0.5 puts the unit in the last place of a float32 there, and rounds to even.
    scratch[0] = Math.abs(scratch[0]!) + 0.5;
    return sign | (scratchBits[0]! - 0x3f000000);
  }
  const odd = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + odd) >>> 13);
}

/** The number that the bits of a half stand for. */
export function fromHalf(half: number): number {
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  const sign = half & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The bits of the bfloat16 (a float32's upper half) nearest to `value`, ties to even; NaN becomes the one NaN 0x7fc0. */
export function toBrain(value: number): number {
  scratch[0] = value;
  const bits = scratchBits[0]!;
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** The number that the bits of a bfloat16 stand for. */
export function fromBrain(brain: number): number {
  scratchBits[0] = brain << 16;
  return scratch[0]!;
}

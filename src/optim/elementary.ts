/**
 * Functions from IEEE's basic operations alone: engines differ in the last bits of Math.pow, Math.exp and Math.cos, and
 * replicas that compute their own learning rates must not.
 */

/** base ** exponent for a count, by squaring. */
export function integerPower(base: number, exponent: number): number {
  let power = 1;
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power *= square;
    square *= square;
  }
  return power;
}

/** base ** exponent for a positive base. */
export function power(base: number, exponent: number): number {
  return Number.isInteger(exponent) && exponent >= 0
    ? integerPower(base, exponent)
    : exponential(exponent * logarithm(base));
}

/** The cosine of an angle of at most a few turns. */
export function cosine(angle: number): number {
  const folded = Math.abs(angle) % (2 * Math.PI);
  const half = folded > Math.PI ? 2 * Math.PI - folded : folded;
  if (half > Math.PI / 2) return -cosine(Math.PI - half);
  const square = half * half;
  // Taylor's series: at pi / 2 the terms are below 2^-53 from the 22nd power on.
  let series = 0;
  for (let term = 24; term >= 2; term -= 2) series = (-square / (term * (term - 1))) * (1 + series);
  return 1 + series;
}

function exponential(x: number): number {
  let halvings = 0;
  let small = x;
  for (; Math.abs(small) > 0.5; small /= 2) halvings += 1;
  let series = 0;
  for (let term = 16; term >= 1; term--) series = (small / term) * (1 + series);
  let result = 1 + series;
  for (; halvings > 0; halvings--) result *= result;
  return result;
}

function logarithm(x: number): number {
  let exponent = 0;
  let mantissa = x;
  for (; mantissa < Math.SQRT1_2; mantissa *= 2) exponent -= 1;
  for (; mantissa > Math.SQRT2; mantissa /= 2) exponent += 1;
  // log m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172: 12 terms reach 2^-53.
  const ratio = (mantissa - 1) / (mantissa + 1);
  const square = ratio * ratio;
  let series = 0;
  for (let term = 25; term >= 1; term -= 2) series = series * square + 1 / term;
  return exponent * Math.LN2 + 2 * ratio * series;
}

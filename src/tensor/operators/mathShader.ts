/**
 * WGSL functions whose built-in namesakes are too loose. NaN is told by its bits, since WGSL lets a compiler assume
 * that there is none.
 */
export const isNan = /* wgsl */ `
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
`;

/**
 * The error function to 1 unit in the last place (N. Juffa's minimax approximations in single precision). Beyond 4 it
 * is 1 in float32.
 */
export const erf = /* wgsl */ `${isNan}
fn erf(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let t = min(abs(x), 4.0);
  let s = t * t;
  if (t > 0.927734375) {
    var r = -1.72853470e-5 * t + 3.83197126e-4;
    let v = -3.88396438e-3 * t + 2.42546219e-2;
    r = r * s + v;
    r = r * t - 1.06777877e-1;
    r = r * t - 6.34846687e-1;
    r = r * t - 1.28717512e-1;
    r = r * t - t;
    return sign(x) * (1.0 - exp(r));
  }
  var r = -5.96761703e-4;
  r = r * s + 4.99119423e-3;
  r = r * s - 2.67681349e-2;
  r = r * s + 1.12819925e-1;
  r = r * s - 3.76125336e-1;
  r = r * s + 1.28379166e-1;
  return r * x + x;
}
`;

/** log with its limits: some adapters give a finite number for 0. */
export const log = /* wgsl */ `
fn safe_log(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  // Positive and finite.
  if (bits - 1u < 0x7f7fffffu) { return log(x); }
  if ((bits & 0x7fffffffu) == 0u) { return bitcast<f32>(0xff800000u | (bits & 0u)); }
  return select(bitcast<f32>(0x7fc00000u | (bits & 1u)), x, bits == 0x7f800000u);
}
`;

/** The density of the standard normal distribution. */
export const normalDensity = /* wgsl */ `
fn normal_density(x: f32) -> f32 { return 0.3989422804014327 * exp(-0.5 * x * x); }
`;

/** tanh that neither overflows for large arguments nor loses small ones. */
export const tanh = /* wgsl */ `
fn safe_tanh(x: f32) -> f32 {
  let t = abs(x);
  if (t < 0.55) {
    let s = x * x;
    return x + x * s * (-0.33333133 + s * (0.13327631 + s * (-0.05343732 + s * 0.01823453)));
  }
  let e = exp(-2.0 * t);
  return sign(x) * ((1.0 - e) / (1.0 + e));
}
`;

/** x^y with PyTorch's answers for negative bases, zeros and infinities. */
export const pow = /* wgsl */ `
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) { return 1.0; }
  if (is_nan(x)) { return x; }
  if (is_nan(y)) { return y; }
  let base = abs(x);
  let is_odd = abs(y) < 16777216.0 && floor(y) == y && (i32(y) & 1) == 1;
  var r = 0.0;
  if (base == 0.0) {
    r = select(0.0, bitcast<f32>(0x7f800000u | (bitcast<u32>(base) & 1u)), y < 0.0);
  } else {
    r = pow(base, y);
  }
  if ((bitcast<u32>(x) >> 31u) == 0u) { return r; }
  if (floor(y) != y && base != 0.0) { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(x) & 1u)); }
  return select(r, -r, is_odd);
}
`;

/**
 * Sine and cosine by Cody and Waite's reduction to [-pi/4, pi/4] and Cephes' polynomials; WGSL's own are only right to
 * 5e-4 on some adapters.
 */
export const trigonometry = /* wgsl */ `
fn sine_of_quarters(x: f32, quarters: i32) -> f32 {
  let n = round(x * 0.6366197723675814);
  let r = ((x - n * 1.5703125) - n * 4.8375129699707031e-4) - n * 7.5497899548918824e-8;
  let s = r * r;
  let phase = (i32(n) + quarters) & 3;
  var y = r + r * s * (-1.6666654611e-1 + s * (8.3321608736e-3 - s * 1.9515295891e-4));
  if ((phase & 1) == 1) {
    y = 1.0 - 0.5 * s + s * s * (4.166664568298827e-2 + s * (-1.388731625493765e-3 + s * 2.443315711809948e-5));
  }
  return select(y, -y, phase >= 2);
}
`;

/**
 * WGSL functions whose built-in namesakes are too loose. NaN is told by its bits, since WGSL lets a compiler assume
 * that there is none.
 */
export const isNan = /* wgsl */ `
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
`;

/** exp that passes NaN on, for which some adapters give infinity. */
export const exp = /* wgsl */ `${isNan}
fn safe_exp(x: f32) -> f32 { return select(exp(x), x, is_nan(x)); }
`;

/**
 * The logarithm and the value of a sum of exponentials that is finite unless one of them is of NaN. Adapters that give
 * infinity for exp(NaN) would make a row with a NaN look like one without.
 */
export const exponentialSum = /* wgsl */ `
fn nan_for(x: f32) -> f32 { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(x) & 1u)); }
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }
fn sum_of_exponentials(x: f32) -> f32 { return select(nan_for(x), x, is_finite(x)); }
fn log_of_exponentials(x: f32) -> f32 { return select(nan_for(x), log(x), is_finite(x)); }
`;

/**
 * The error function to 1 unit in the last place (N. Juffa's minimax approximations in single precision). Beyond 4 it
 * is 1 in float32.
 */
export const erf = /* wgsl */ `${isNan}
fn erf(x: f32) -> f32 {
  let t = min(abs(x), 4.0);
  let s = t * t;
  var far = -1.72853470e-5 * t + 3.83197126e-4;
  let v = -3.88396438e-3 * t + 2.42546219e-2;
  far = far * s + v;
  far = far * t - 1.06777877e-1;
  far = far * t - 6.34846687e-1;
  far = far * t - 1.28717512e-1;
  far = far * t - t;
  var near = -5.96761703e-4;
  near = near * s + 4.99119423e-3;
  near = near * s - 2.67681349e-2;
  near = near * s + 1.12819925e-1;
  near = near * s - 3.76125336e-1;
  near = near * s + 1.28379166e-1;
  // Both are computed, since neighbours that part ways cost more.
  let value = select(near * x + x, sign(x) * (1.0 - exp(far)), t > 0.927734375);
  return select(value, x, is_nan(x));
}
`;

/**
 * Logarithms to 1 unit in the last place, by Cephes' polynomial; WGSL's own may be off by 5e-7 near 1, where the result
 * is near 0. With their limits, and for numbers too small to be normal, which adapters may take for 0.
 */
const logParts = /* wgsl */ `
// log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1.
fn log_near_one(f: f32) -> f32 {
  let z = f * f;
  var p = 7.0376836292e-2 * f - 1.1514610310e-1;
  p = p * f + 1.1676998740e-1;
  p = p * f - 1.2420140846e-1;
  p = p * f + 1.4249322787e-1;
  p = p * f - 1.6668057665e-1;
  p = p * f + 2.0000714765e-1;
  p = p * f - 2.4999993993e-1;
  p = p * f + 3.3333331174e-1;
  return f + (p * f * z - 0.5 * z);
}
// x = 2^y.x (1 + y.y) for positive, finite bits.
fn log_parts(x: u32) -> vec2f {
  var bits = x;
  var exponent = -127;
  if (bits < 0x800000u) {
    bits = bitcast<u32>(f32(bits));
    exponent = -276;
  }
  exponent += i32(bits >> 23u);
  var m = bitcast<f32>((bits & 0x7fffffu) | 0x3f800000u);
  if (m > 1.4142135) {
    m *= 0.5;
    exponent += 1;
  }
  return vec2f(f32(exponent), m - 1.0);
}
// The logarithm of what is not positive and finite.
fn log_limit(bits: u32) -> f32 {
  if ((bits & 0x7fffffffu) == 0u) { return bitcast<f32>(0xff800000u | (bits & 0u)); }
  return select(bitcast<f32>(0x7fc00000u | (bits & 1u)), bitcast<f32>(bits), bits == 0x7f800000u);
}
`;

const logOfParts = (name: string, result: string) => /* wgsl */ `
fn ${name}(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if (bits - 1u >= 0x7f7fffffu) { return log_limit(bits); }
  let parts = log_parts(bits);
  return ${result};
}
`;

const naturalLog = logOfParts("safe_log", "(log_near_one(parts.y) - 2.12194440e-4 * parts.x) + 0.693359375 * parts.x");
export const log = logParts + naturalLog;
export const log2 = logParts + logOfParts("safe_log2", "log_near_one(parts.y) * 1.4426950408889634 + parts.x");
export const log10 =
  logParts +
  logOfParts(
    "safe_log10",
    "(log_near_one(parts.y) * 0.4342944819032518 + 4.605038981195214e-6 * parts.x) + 0.301025390625 * parts.x",
  );

/** log(1 + x) without losing small x. */
export const log1p = /* wgsl */ `${log}
fn log_one_plus(x: f32) -> f32 {
  if (x > -0.29 && x < 0.41) { return log_near_one(x); }
  return safe_log(1.0 + x);
}
`;

/** exp(x) - 1 without losing small x. */
export const expm1 = /* wgsl */ `${exp}
fn exp_minus_one(x: f32) -> f32 {
  if (!(abs(x) <= 0.5)) { return safe_exp(x) - 1.0; }
  var p = 1.0 + x * 0.125;
  p = 1.0 + x * p * 0.14285715;
  p = 1.0 + x * p * 0.16666667;
  p = 1.0 + x * p * 0.2;
  p = 1.0 + x * p * 0.25;
  p = 1.0 + x * p * 0.33333334;
  p = 1.0 + x * p * 0.5;
  return x * p;
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
  if (t < 0.625) {
    let s = x * x;
    var p = -5.70498872745e-3 * s + 2.06390887954e-2;
    p = p * s - 5.37397155531e-2;
    p = p * s + 1.33314422036e-1;
    p = p * s - 3.33332819422e-1;
    return x + x * s * p;
  }
  let e = exp(-2.0 * t);
  return sign(x) * ((1.0 - e) / (1.0 + e));
}
`;

/**
 * x^y with PyTorch's answers for negative bases, zeros and infinities. Small whole exponents are products; others are
 * 2^(y log2 x) with the logarithm in two floats, after FreeBSD's e_powf.c, since its error counts y times.
 */
export const pow = /* wgsl */ `
fn upper_half(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
// For a positive, finite x.
fn positive_power(x: f32, y: f32) -> f32 {
  var bits = bitcast<u32>(x);
  var exponent = -127;
  if (bits < 0x800000u) {
    bits = bitcast<u32>(f32(bits));
    exponent = -276;
  }
  exponent += i32(bits >> 23u);
  let mantissa = bits & 0x7fffffu;
  var near = mantissa | 0x3f800000u;
  var k = 0u;
  if (mantissa > 0x1cc471u) {
    if (mantissa < 0x5db3d7u) {
      k = 1u;
    } else {
      exponent += 1;
      near -= 0x800000u;
    }
  }
  let m = bitcast<f32>(near);
  let base = select(1.0, 1.5, k == 1u);
  // s = (m - base) / (m + base) in two floats.
  let u = m - base;
  let v = 1.0 / (m + base);
  let s = u * v;
  let s_high = upper_half(s);
  let t_high = bitcast<f32>((((near >> 1u) & 0xfffff000u) | 0x20000000u) + 0x400000u + (k << 21u));
  let t_low = m - (t_high - base);
  let s_low = v * ((u - s_high * t_high) - s_high * t_low);
  let s2 = s * s;
  var r = 2.0697501302e-1;
  r = r * s2 + 2.3066075146e-1;
  r = r * s2 + 2.7272811532e-1;
  r = r * s2 + 3.3333334327e-1;
  r = r * s2 + 4.2857143283e-1;
  r = (r * s2 + 6.0000002384e-1) * s2 * s2 + s_low * (s_high + s);
  let s_high2 = s_high * s_high;
  let q_high = upper_half(3.0 + s_high2 + r);
  let q_low = r - ((q_high - 3.0) - s_high2);
  let product = s_high * q_high;
  let rest = s_low * q_high + q_low * s;
  let p_high = upper_half(product + rest);
  let p_low = rest - (p_high - product);
  let z_high = 9.6191406250e-1 * p_high;
  let z_low = -1.1736857402e-4 * p_high + p_low * 9.6179670095e-1 + select(0.0, 1.56322085e-6, k == 1u);
  // log2 x = log_high + log_low.
  let base_log = select(0.0, 5.84960938e-1, k == 1u);
  let n = f32(exponent);
  let log_high = upper_half(((z_high + z_low) + base_log) + n);
  let log_low = z_low - (((log_high - n) - base_log) - z_high);
  let y_high = upper_half(y);
  let low = (y - y_high) * log_high + y * log_low;
  let high = y_high * log_high;
  let total = high + low;
  if (total >= 128.0) { return bitcast<f32>(0x7f800000u | (bits & 0u)); }
  if (!(total >= -150.0)) { return 0.0; }
  let whole = round(total);
  let half = i32(whole) / 2;
  return exp2((high - whole) + low) * power_of_two(half) * power_of_two(i32(whole) - half);
}
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) { return 1.0; }
  if (is_nan(x)) { return x; }
  if (is_nan(y)) { return y; }
  let base = abs(x);
  let is_whole = floor(y) == y;
  let is_odd = is_whole && abs(y) < 16777216.0 && (i32(y) & 1) == 1;
  let infinity = bitcast<f32>(0x7f800000u | (bitcast<u32>(base) & 0u));
  var r = 1.0;
  if (base == 0.0 || base == infinity) {
    r = select(infinity, 0.0, (base == 0.0) == (y > 0.0));
  } else if (abs(y) == infinity) {
    r = select(select(infinity, 0.0, (base < 1.0) == (y > 0.0)), 1.0, base == 1.0);
  } else {
    var is_exact = is_whole && abs(y) <= 8.0;
    if (is_exact) {
      for (var i = 0; i < i32(abs(y)); i++) { r *= base; }
      is_exact = r > 1.1754944e-38 && r < infinity;
      if (y < 0.0) { r = 1.0 / r; }
    }
    if (!is_exact) { r = positive_power(base, y); }
  }
  if ((bitcast<u32>(x) >> 31u) == 0u) { return r; }
  if (!is_whole && base != 0.0 && base != infinity) { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(x) & 1u)); }
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

/**
 * Sine, cosine and tangent for arguments of any size: those over 8192 are reduced by a product with 190 bits of 2/pi
 * (M. Payne and R. Hanek; after N. Juffa's implementation).
 */
export const wideTrigonometry = /* wgsl */ `
fn multiply_high(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let cross = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (cross & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (cross >> 16u) + (other >> 16u);
}
struct Quarter { rest: f32, count: i32 }
// x = count * pi / 2 + rest, with the count modulo 4.
fn quarter_of(x: f32) -> Quarter {
  if (abs(x) < 8192.0) {
    let n = round(x * 0.6366197723675814);
    return Quarter(((x - n * 1.5703125) - n * 4.8375129699707031e-4) - n * 7.5497899548918824e-8, i32(n));
  }
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) >= 0x7f800000u) { return Quarter(bitcast<f32>(0x7fc00000u | (bits & 1u)), 0); }
  var words = array<u32, 7>(0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u);
  let mantissa = ((bits & 0x7fffffu) << 8u) | 0x80000000u;
  let exponent = ((bits >> 23u) & 0xffu) - 126u;
  let first = exponent >> 5u;
  let shift = exponent & 31u;
  var high = words[first];
  var middle = words[first + 1u];
  var low = words[first + 2u];
  if (shift != 0u) {
    high = (high << shift) | (middle >> (32u - shift));
    middle = (middle << shift) | (low >> (32u - shift));
    low = (low << shift) | (words[first + 3u] >> (32u - shift));
  }
  // The product modulo 4, in units of 2^-62.
  let carried = mantissa * middle;
  let lower = carried + multiply_high(mantissa, low);
  var upper = multiply_high(mantissa, middle) + select(0u, 1u, lower < carried) + mantissa * high;
  var count = i32(upper >> 30u);
  // The fraction as a signed number of quarters, from -1/2 to 1/2.
  upper = upper & 0x3fffffffu;
  if ((upper & 0x20000000u) != 0u) {
    upper |= 0xc0000000u;
    count += 1;
  }
  let fraction = f32(i32(upper)) * 9.313225746154785e-10 + f32(lower) * 2.168404344971009e-19;
  let rest = fraction * 1.5707963267948966;
  if (x < 0.0) { return Quarter(-rest, -count); }
  return Quarter(rest, count);
}
fn sine_near_zero(r: f32) -> f32 {
  let s = r * r;
  return r + r * s * (-1.6666654611e-1 + s * (8.3321608736e-3 - s * 1.9515295891e-4));
}
fn cosine_near_zero(r: f32) -> f32 {
  let s = r * r;
  return 1.0 - 0.5 * s + s * s * (4.166664568298827e-2 + s * (-1.388731625493765e-3 + s * 2.443315711809948e-5));
}
fn wide_sine(x: f32, quarters: i32) -> f32 {
  let q = quarter_of(x);
  let phase = (q.count + quarters) & 3;
  let y = select(sine_near_zero(q.rest), cosine_near_zero(q.rest), (phase & 1) == 1);
  return select(y, -y, phase >= 2);
}
fn wide_tangent(x: f32) -> f32 {
  let q = quarter_of(x);
  let s = sine_near_zero(q.rest);
  let c = cosine_near_zero(q.rest);
  if ((q.count & 1) == 1) { return -c / s; }
  return s / c;
}
`;

/** Inverse functions of trigonometry by Cephes' polynomials; WGSL's own may be off by 4096 units in the last place. */
export const arctangent = /* wgsl */ `
fn with_sign_of(magnitude: f32, signed: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(magnitude) & 0x7fffffffu) | (bitcast<u32>(signed) & 0x80000000u));
}
fn arctangent(x: f32) -> f32 {
  let t = abs(x);
  var y = 0.0;
  var r = t;
  if (t > 2.414213562373095) {
    y = 1.5707963267948966;
    r = -1.0 / t;
  } else if (t > 0.4142135623730950) {
    y = 0.7853981633974483;
    r = (t - 1.0) / (t + 1.0);
  }
  let z = r * r;
  y += (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * r + r;
  return with_sign_of(y, x);
}
`;
/** The angle of the point (x, y), with the answers of C's atan2 for zeros and infinities. */
export const arctangent2 = /* wgsl */ `${isNan}${arctangent}
fn arctangent2(y: f32, x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  if (is_nan(y)) { return y; }
  // Kept from where divisions may overflow or vanish.
  let scale = select(select(1.0, 5.421010862427522e-20, max(abs(x), abs(y)) > 1e18), 1.8446744e19, max(abs(x), abs(y)) < 1e-18);
  let a = abs(x) * scale;
  let b = abs(y) * scale;
  var ratio = min(a, b) / max(a, b);
  if (max(a, b) == 0.0) { ratio = 0.0; }
  if ((bitcast<u32>(min(a, b)) & 0x7fffffffu) == 0x7f800000u) { ratio = 1.0; }
  var angle = arctangent(ratio);
  if (b > a) { angle = 1.5707963267948966 - angle; }
  if ((bitcast<u32>(x) >> 31u) == 1u) { angle = 3.141592653589793 - angle; }
  return with_sign_of(angle, y);
}
`;
export const arcsine = /* wgsl */ `
fn arcsine_near_zero(s: f32) -> f32 {
  let z = s * s;
  var p = 4.2163199048e-2 * z + 2.4181311049e-2;
  p = p * z + 4.5470025998e-2;
  p = p * z + 7.4953002686e-2;
  p = p * z + 1.6666752422e-1;
  return p * z * s + s;
}
fn outside_domain(x: f32) -> f32 { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(x) & 1u)); }
fn arcsine(x: f32) -> f32 {
  let t = abs(x);
  if (!(t <= 1.0)) { return outside_domain(x); }
  if (t <= 0.5) { return arcsine_near_zero(x); }
  let y = 1.5707963267948966 - 2.0 * arcsine_near_zero(sqrt(0.5 * (1.0 - t)));
  return select(y, -y, x < 0.0);
}
fn arccosine(x: f32) -> f32 {
  let t = abs(x);
  if (!(t <= 1.0)) { return outside_domain(x); }
  if (t <= 0.5) { return 1.5707963267948966 - arcsine_near_zero(x); }
  let y = 2.0 * arcsine_near_zero(sqrt(0.5 * (1.0 - t)));
  return select(y, 3.141592653589793 - y, x < 0.0);
}
`;

/** Hyperbolic functions that overflow only where the result does, and don't lose small arguments. */
export const hyperbolic = /* wgsl */ `${exp}
fn hyperbolic_sine(x: f32) -> f32 {
  let t = abs(x);
  if (t < 1.0) {
    let z = x * x;
    return ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
  }
  let h = safe_exp(0.5 * t);
  let y = 0.5 * h * h - 0.5 / (h * h);
  return select(y, -y, x < 0.0);
}
fn hyperbolic_cosine(x: f32) -> f32 {
  let h = safe_exp(0.5 * abs(x));
  return 0.5 * h * h + 0.5 / (h * h);
}
`;

/** C's fmod, exact: long division of the mantissas, 8 bits at a time. */
export const floatModulo = /* wgsl */ `
fn float_modulo(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (b == 0u || a >= 0x7f800000u || b > 0x7f800000u) { return bitcast<f32>(0x7fc00000u | (a & 1u)); }
  if (a < b) { return x; }
  let exponent_a = max(a >> 23u, 1u);
  let exponent_b = max(b >> 23u, 1u);
  let divisor = (b & 0x7fffffu) | select(0u, 0x800000u, b >= 0x800000u);
  var rest = ((a & 0x7fffffu) | select(0u, 0x800000u, a >= 0x800000u)) % divisor;
  var left = exponent_a - exponent_b;
  while (left > 0u && rest > 0u) {
    let step = min(left, 8u);
    rest = (rest << step) % divisor;
    left -= step;
  }
  if (rest == 0u) { return bitcast<f32>(sign); }
  let shift = countLeadingZeros(rest) - 8u;
  if (exponent_b > shift) {
    return bitcast<f32>(sign | ((exponent_b - shift) << 23u) | ((rest << shift) & 0x7fffffu));
  }
  return bitcast<f32>(sign | (rest << (exponent_b - 1u)));
}
fn float_remainder(x: f32, y: f32) -> f32 {
  let rest = float_modulo(x, y);
  return select(rest, rest + y, rest != 0.0 && (rest < 0.0) != (y < 0.0));
}
`;

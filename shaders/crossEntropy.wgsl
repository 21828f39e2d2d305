// What the kernels of softmax cross-entropy with class indices share: one invocation a position, whose classes lie
// `inner` apart. With smoothing e and C classes, class c weighs (1 - e) w[c] at the target and e / C w[c] everywhere.
// A target that is no class gives NaN, so that a wrong label can't pass unseen.

struct Uniforms {
  positions: u32,
  classes: u32,
  inner: u32,
  ignore_index: i32,
  smoothing: f32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;

fn first_of(position: u32) -> u32 {
  return (position / u.inner) * u.classes * u.inner + position % u.inner;
}

fn not_a_number(seed: u32) -> f32 {
  return bitcast<f32>(0x7fc00000u | (seed & 1u));
}

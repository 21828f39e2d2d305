// One invocation a row of `length` elements, `inner` apart. The last pass is filled in by the operator: it has the
// element `x` at `at`, the row's largest element and the sum of exp(x - top).

struct Uniforms { rows: u32, length: u32, inner: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> in_x: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let row = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (row >= u.rows) { return; }
  let first = (row / u.inner) * u.length * u.inner + row % u.inner;
  let end = first + u.length * u.inner;
  var top = in_x[first];
  for (var at = first + u.inner; at < end; at += u.inner) { top = max(top, in_x[at]); }
  var total = 0.0;
  for (var at = first; at < end; at += u.inner) { total += exp(in_x[at] - top); }
  for (var at = first; at < end; at += u.inner) {
    let x = in_x[at];
    // finish
  }
}

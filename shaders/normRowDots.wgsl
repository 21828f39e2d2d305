// For each part of each row: the sum of a, and the sum of a times b. Part p of a row takes its elements p, p + parts,
// ..., so that neighbours read neighbours.

struct Params {
  rows: u32,
  length: u32,
  parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
// [part, 2, row]: the sums of a, then of a times b.
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  let rows = params.rows;
  let parts = params.parts;
  if (i >= rows * parts) {
    return;
  }
  let row = i / parts;
  let part = i - row * parts;
  let end = (row + 1u) * params.length;
  var sum = 0.0;
  var dot = 0.0;
  for (var at = row * params.length + part; at < end; at += parts) {
    let value = a[at];
    sum += value;
    dot += value * b[at];
  }
  output[part * 2u * rows + row] = sum;
  output[(part * 2u + 1u) * rows + row] = dot;
}

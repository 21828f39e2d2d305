// normRowMoments.wgsl for parts of whole vectors of 4, equally many. Part p of a row takes its vectors p, p + parts, ...:
// so neighbours read neighbours. Two passes, since the difference of two large sums would lose what is small.

struct Params {
  rows: u32,
  length: u32,
  parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec4f>;
// [part, row] of means, then [part, row] of sums of squared deviations.
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

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
  let quads = params.length / 4u;
  let first = row * quads + part;
  let end = (row + 1u) * quads;
  var sums = vec4f();
  for (var at = first; at < end; at += parts) {
    sums += input[at];
  }
  let mean = (sums.x + sums.y + sums.z + sums.w) / f32(params.length / parts);
  var squares4 = vec4f();
  for (var at = first; at < end; at += parts) {
    let deviation = input[at] - mean;
    squares4 += deviation * deviation;
  }
  let squares = squares4.x + squares4.y + squares4.z + squares4.w;
  output[part * rows + row] = mean;
  output[(parts + part) * rows + row] = squares;
}

// Mean and sum of squared deviations of a part of a row. Part p of a row takes its elements p, p + parts, ...: so
// neighbours read neighbours. Two passes, since the difference of two large sums would lose what is small.

struct Params {
  rows: u32,
  length: u32,
  parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
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
  let first = row * params.length + part;
  let end = (row + 1u) * params.length;
  var sum = 0.0;
  for (var at = first; at < end; at += parts) {
    sum += input[at];
  }
  let mean = sum / f32((end - first + parts - 1u) / parts);
  var squares = 0.0;
  for (var at = first; at < end; at += parts) {
    let deviation = input[at] - mean;
    squares += deviation * deviation;
  }
  output[part * rows + row] = mean;
  output[(parts + part) * rows + row] = squares;
}

// Adds equally long parts, which lie one after the other, in their order.

struct Params {
  length: u32,
  parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.length) {
    return;
  }
  let end = params.parts * params.length;
  let length = params.length;
  var sum = 0.0;
  for (var at = i; at < end; at += length) {
    sum += input[at];
  }
  output[i] = sum;
}

// input * scale + shift, with a scale and a shift for each row.

struct Params {
  count: u32,
  length: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read> shift: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let first = (workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z)) * 256u + lane;
  let end = min(params.count, first + 256u - lane);
  let length = params.length;
  for (var at = first; at < end; at += 64u) {
    let row = at / length;
    output[at] = input[at] * scale[row] + shift[row];
  }
}

// Rows of a table by their indices.

struct Params {
  count: u32,
  columns: u32,
  rows: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let place = i / params.columns;
  let index = indices[place];
  if (index < 0 || u32(index) >= params.rows) {
    // NaN, which a compiler can't take for a constant.
    output[i] = bitcast<f32>(0x7fc00000u | (params.count & 1u));
    return;
  }
  output[i] = weight[u32(index) * params.columns + (i - place * params.columns)];
}

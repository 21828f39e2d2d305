// input * scale + shift, with a scale and a shift for each row, four values at once: for rows whose length is a multiple
// of 4.

struct Params {
  quads: u32,
  quadsPerRow: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec4f>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read> shift: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.quads) {
    return;
  }
  let row = i / params.quadsPerRow;
  output[i] = input[i] * scale[row] + shift[row];
}

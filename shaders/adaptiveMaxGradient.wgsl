// The gradient of adaptive max pooling: each input value sums, in a fixed order, the gradients of the windows that chose
// it.

struct Params {
  count: u32,
  outHeight: u32,
  outWidth: u32,
  inHeight: u32,
  inWidth: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let inSize = params.inHeight * params.inWidth;
  let plane = i / inSize;
  let place = i - plane * inSize;
  let row = place / params.inWidth;
  let column = place - row * params.inWidth;
  let first = vec2u(column * params.outWidth / params.inWidth, row * params.outHeight / params.inHeight);
  let end = vec2u(
    ((column + 1u) * params.outWidth + params.inWidth - 1u) / params.inWidth,
    ((row + 1u) * params.outHeight + params.inHeight - 1u) / params.inHeight,
  );
  var sum = 0.0;
  for (var y = first.y; y < end.y; y++) {
    for (var x = first.x; x < end.x; x++) {
      let window = (plane * params.outHeight + y) * params.outWidth + x;
      if (indices[window] == i32(place)) {
        sum += gradient[window];
      }
    }
  }
  output[i] = sum;
}

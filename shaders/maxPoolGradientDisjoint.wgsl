// The gradient of max pooling where windows don't overlap: each invocation has one window and writes the part of the
// input from it to the next window, in which its gradient stands at the place that it chose. Parts behind the last
// windows are zero.

struct Params {
  parts: u32,
  partsPerPlane: u32,
  partsPerRow: u32,
  outSize: u32,
  outHeight: u32,
  outWidth: u32,
  inHeight: u32,
  inWidth: u32,
  stride: vec2u,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.parts) {
    return;
  }
  let plane = i / params.partsPerPlane;
  let part = i - plane * params.partsPerPlane;
  let partRow = part / params.partsPerRow;
  let partColumn = part - partRow * params.partsPerRow;
  let isWindow = partRow < params.outHeight && partColumn < params.outWidth;
  let window = select(0u, plane * params.outSize + partRow * params.outWidth + partColumn, isWindow);
  let chosen = select(-1, indices[window], isWindow);
  let value = gradient[window];
  let inWidth = params.inWidth;
  let plane0 = plane * params.inHeight * inWidth;
  let start = vec2u(partColumn, partRow) * params.stride;
  let end = min(start + params.stride, vec2u(inWidth, params.inHeight));
  for (var row = start.y; row < end.y; row++) {
    for (var column = start.x; column < end.x; column++) {
      let place = row * inWidth + column;
      output[plane0 + place] = select(0.0, value, i32(place) == chosen);
    }
  }
}

// The gradient of max pooling: each input value sums, in a fixed order, the gradients of the windows that chose it.

struct Params {
  count: u32,
  outSize: u32,
  outHeight: i32,
  outWidth: i32,
  inSize: u32,
  inWidth: u32,
  kernelHeight: i32,
  kernelWidth: i32,
  stride: vec2i,
  padding: vec2i,
  dilation: vec2i,
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
  let plane = i / params.inSize;
  let place = i - plane * params.inSize;
  let inRow = place / params.inWidth;
  let padded = vec2i(vec2u(place - inRow * params.inWidth, inRow)) + params.padding;
  let outExtent = vec2i(params.outWidth, params.outHeight);
  let span = (vec2i(params.kernelWidth, params.kernelHeight) - 1) * params.dilation;
  let stride = params.stride;
  // Windows from the first whose end reaches this place to the last that begins before it.
  let first = max(vec2i(), (padded - span + stride - 1) / stride);
  let last = min(outExtent - 1, padded / stride);
  let plane0 = plane * params.outSize;
  var sum = 0.0;
  for (var row = first.y; row <= last.y; row++) {
    for (var column = first.x; column <= last.x; column++) {
      let window = plane0 + u32(row * outExtent.x + column);
      if (indices[window] == i32(place)) {
        sum += gradient[window];
      }
    }
  }
  output[i] = sum;
}

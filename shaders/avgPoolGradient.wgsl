// The gradient of average pooling: each input value sums its part of the gradients of the windows that cover it.

struct Params {
  count: u32,
  outSize: u32,
  outHeight: i32,
  outWidth: i32,
  inHeight: i32,
  inWidth: i32,
  // 0: the window's own size.
  divisor: f32,
  // Whether a window's own size includes the padding.
  countPadding: u32,
  kernel: vec2i,
  stride: vec2i,
  padding: vec2i,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let extent = vec2i(params.inWidth, params.inHeight);
  let outExtent = vec2i(params.outWidth, params.outHeight);
  let kernel = params.kernel;
  let stride = params.stride;
  let padding = params.padding;
  let inSize = u32(extent.x * extent.y);
  let plane = i / inSize;
  let place = i32(i - plane * inSize);
  let padded = vec2i(place % extent.x, place / extent.x) + padding;
  // Windows from the first whose end reaches this place to the last that begins before it.
  let first = max(vec2i(), (padded - kernel + stride) / stride);
  let last = min(outExtent - 1, padded / stride);
  let plane0 = plane * params.outSize;
  var sum = 0.0;
  for (var row = first.y; row <= last.y; row++) {
    for (var column = first.x; column <= last.x; column++) {
      var divisor = params.divisor;
      if (divisor == 0.0) {
        let begin = vec2i(column, row) * stride - padding;
        let end = min(begin + kernel, extent + padding);
        let size = select(min(end, extent) - max(begin, vec2i()), end - begin, params.countPadding != 0u);
        divisor = f32(size.x * size.y);
      }
      sum += gradient[plane0 + u32(row * outExtent.x + column)] / divisor;
    }
  }
  output[i] = sum;
}

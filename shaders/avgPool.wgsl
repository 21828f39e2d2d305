// Average pooling: the sum of each window's values inside the input, divided by the window's divisor.

struct Params {
  count: u32,
  outSize: u32,
  outWidth: u32,
  // 0: the window's own size.
  divisor: f32,
  inHeight: i32,
  inWidth: i32,
  // Whether a window's own size includes the padding.
  countPadding: u32,
  unused: u32,
  kernel: vec2i,
  stride: vec2i,
  padding: vec2i,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let extent = vec2i(params.inWidth, params.inHeight);
  let plane = i / params.outSize;
  let place = i - plane * params.outSize;
  let outRow = place / params.outWidth;
  let first = vec2i(vec2u(place - outRow * params.outWidth, outRow)) * params.stride - params.padding;
  let last = min(first + params.kernel, extent + params.padding);
  let start = max(first, vec2i());
  let end = min(last, extent);
  let plane0 = i32(plane) * extent.x * extent.y;
  var sum = 0.0;
  for (var row = start.y; row < end.y; row++) {
    for (var column = start.x; column < end.x; column++) {
      sum += input[plane0 + row * extent.x + column];
    }
  }
  var divisor = params.divisor;
  if (divisor == 0.0) {
    let size = select(end - start, last - first, params.countPadding != 0u);
    divisor = f32(size.x * size.y);
  }
  output[i] = select(sum / divisor, 0.0, start.x >= end.x || start.y >= end.y);
}

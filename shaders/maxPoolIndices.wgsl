// For each window of each plane, the index in the plane of its largest value: the first of equals, and a NaN if there is
// one.

struct Params {
  count: u32,
  outSize: u32,
  outWidth: u32,
  inHeight: i32,
  inWidth: i32,
  kernelHeight: i32,
  kernelWidth: i32,
  unused: u32,
  stride: vec2i,
  padding: vec2i,
  dilation: vec2i,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<i32>;

// Tests bits: a compiler may take x != x for false.
fn isNan(value: f32) -> bool {
  return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let inHeight = params.inHeight;
  let inWidth = params.inWidth;
  let dilation = params.dilation;
  let plane = i / params.outSize;
  let place = i - plane * params.outSize;
  let outRow = place / params.outWidth;
  let first = vec2i(vec2u(place - outRow * params.outWidth, outRow)) * params.stride - params.padding;
  let end = min(first + vec2i(params.kernelWidth, params.kernelHeight) * dilation, vec2i(inWidth, inHeight));
  // The first row and column of the window that are inside.
  let start = first + max(vec2i(), (dilation - 1 - first) / dilation) * dilation;
  let plane0 = i32(plane) * inHeight * inWidth;
  var at = start.y * inWidth + start.x;
  var largest = input[plane0 + at];
  for (var row = start.y; row < end.y; row += dilation.y) {
    for (var column = start.x; column < end.x; column += dilation.x) {
      let value = input[plane0 + row * inWidth + column];
      if (value > largest || (isNan(value) && !isNan(largest))) {
        largest = value;
        at = row * inWidth + column;
      }
    }
  }
  output[i] = at;
}

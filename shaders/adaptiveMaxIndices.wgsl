// For each window of each plane, the index in the plane of its largest value: the first of equals, and a NaN if there is
// one. The windows divide the plane evenly, overlapping where it can't be.

struct Params {
  count: u32,
  outHeight: u32,
  outWidth: u32,
  inHeight: u32,
  inWidth: u32,
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
  let outer = i / params.outWidth;
  let column = i - outer * params.outWidth;
  let plane = outer / params.outHeight;
  let row = outer - plane * params.outHeight;
  let first = vec2u(column * params.inWidth / params.outWidth, row * params.inHeight / params.outHeight);
  let end = vec2u(
    ((column + 1u) * params.inWidth + params.outWidth - 1u) / params.outWidth,
    ((row + 1u) * params.inHeight + params.outHeight - 1u) / params.outHeight,
  );
  let plane0 = plane * params.inHeight * params.inWidth;
  var at = first.y * params.inWidth + first.x;
  var largest = input[plane0 + at];
  for (var y = first.y; y < end.y; y++) {
    for (var x = first.x; x < end.x; x++) {
      let value = input[plane0 + y * params.inWidth + x];
      if (value > largest || (isNan(value) && !isNan(largest))) {
        largest = value;
        at = y * params.inWidth + x;
      }
    }
  }
  output[i] = i32(at);
}

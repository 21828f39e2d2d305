// Each first place of an index sums the gradients of all its places, in ascending order, into the index's row.

struct Params {
  // Places times columns.
  count: u32,
  places: u32,
  columns: u32,
  // 1: the sum is divided by the number of places.
  isMean: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read> links: array<i32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let place = i / params.columns;
  let column = i - place * params.columns;
  if (links[params.places + place] == 0) {
    return;
  }
  var total = 0.0;
  var part = 0.0;
  var summed = 0u;
  var at = i32(place);
  while (at >= 0) {
    part += gradient[u32(at) * params.columns + column];
    summed++;
    // Runs of 32 are added up apart, which keeps long sums accurate.
    if (summed % 32u == 0u) {
      total += part;
      part = 0.0;
    }
    at = links[at];
  }
  total += part;
  output[u32(indices[place]) * params.columns + column] = total / select(1.0, f32(summed), params.isMean == 1u);
}

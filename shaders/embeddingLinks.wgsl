// Links the places of each index in ascending order, so that its gradients can be summed in that order without atomics:
// the next place with the same index, or -1; and behind all of these, whether a place is the first with its index.

struct Params {
  count: u32,
  rows: u32,
  // An index that gets no gradient; -1: none.
  padding: i32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> links: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let index = indices[i];
  var next = i + 1u;
  while (next < params.count && indices[next] != index) {
    next++;
  }
  // From the nearest on: frequent indices end it soon.
  var before = i;
  while (before > 0u && indices[before - 1u] != index) {
    before--;
  }
  links[i] = select(-1, i32(next), next < params.count);
  let isCounted = index >= 0 && u32(index) < params.rows && index != params.padding;
  links[params.count + i] = select(0, 1, before == 0u && isCounted);
}

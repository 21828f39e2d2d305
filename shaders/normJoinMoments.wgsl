// Joins the moments of a row's parts in their order (Chan, Golub and LeVeque 1979): the mean and the variance, which
// divides by the row's length, of each row.

struct Params {
  rows: u32,
  length: u32,
  parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<f32>;
// The rows' means, then their variances.
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let row = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  let rows = params.rows;
  let parts = params.parts;
  if (row >= rows) {
    return;
  }
  var count = 0.0;
  var mean = 0.0;
  var squares = 0.0;
  for (var part = 0u; part < parts; part++) {
    let added = f32((params.length - part + parts - 1u) / parts);
    let total = count + added;
    let difference = partial[part * rows + row] - mean;
    mean += difference * (added / total);
    squares += partial[(parts + part) * rows + row] + difference * difference * (count * added / total);
    count = total;
  }
  output[row] = mean;
  output[rows + row] = squares / count;
}

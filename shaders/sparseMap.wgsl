// Each output value sums, in a fixed order, the input values along one dimension that its row of the table lists.

struct Params {
  count: u32,
  // Elements of a dimension's step, entries of the dimension in the output and in the input, and of the table.
  inner: u32,
  outputs: u32,
  inputs: u32,
  taps: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
// Where each output's taps begin and the last's end; the taps' inputs; the bits of their weights.
@group(0) @binding(2) var<storage, read> table: array<i32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) grid: vec3u) {
  let i = id.x + (id.y + id.z * grid.y) * grid.x * 64u;
  if (i >= params.count) {
    return;
  }
  let rest = i / params.inner;
  let outer = rest / params.outputs;
  let place = rest - outer * params.outputs;
  let first = outer * params.inputs * params.inner + (i - rest * params.inner);
  let columns = params.outputs + 1u;
  let weights = columns + params.taps;
  var sum = 0.0;
  let end = u32(table[place + 1u]);
  for (var tap = u32(table[place]); tap < end; tap++) {
    sum += bitcast<f32>(table[weights + tap]) * input[first + u32(table[columns + tap]) * params.inner];
  }
  output[i] = sum;
}

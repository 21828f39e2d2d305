/*
 * Entry points of kernels that take the rows of a matrix one at a time, of which `u.rows` is the number. `body` has
 * `row`, `lane` and `lanes`, and joins what the lanes of its row have by `all_sum(value, lane)` and `all_max(value, lane)`.
 */

/** On a GPU, invocations share a row. */
const sharingLanes = 64;

/** Values of all the lanes of a row, joined as a tree. */
const joinLanes = (name: string, join: string) => /* wgsl */ `
fn ${name}(value: f32, lane: u32) -> f32 {
  shared_values[lane] = value;
  workgroupBarrier();
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      let a = shared_values[lane];
      let b = shared_values[lane + half];
      shared_values[lane] = ${join};
    }
    workgroupBarrier();
  }
  let joined = shared_values[0];
  workgroupBarrier();
  return joined;
}`;

/** One invocation takes a row: for software adapters, where lanes would only wait for each other. */
export const rowPerInvocation = (body: string): string => /* wgsl */ `
const lanes = 1u;
const lane = 0u;
fn all_max(value: f32, lane: u32) -> f32 { return value; }
fn all_sum(value: f32, lane: u32) -> f32 { return value; }
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let row = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (row >= u.rows) { return; }
  ${body}
}`;

/** A workgroup takes a row. */
export const rowPerWorkgroup = (body: string): string => /* wgsl */ `
const lanes = ${sharingLanes}u;
var<workgroup> shared_values: array<f32, lanes>;
${joinLanes("all_max", "max(a, b)")}
${joinLanes("all_sum", "a + b")}
@compute @workgroup_size(lanes)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) n: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group.x + (group.y + group.z * n.y) * n.x;
  if (row >= u.rows) { return; }
  ${body}
}`;

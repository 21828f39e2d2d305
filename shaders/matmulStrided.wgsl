// A 4 x 4 register tile an invocation; operands of any strides. Accumulates over k in ascending order, as the tiled
// kernels do. Each invocation has a tile of its own, so that many small products fill the workgroups.

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3u,
  @builtin(num_workgroups) n: vec3u,
) {
  let tile = id.x + (id.y + id.z * n.y) * n.x * 64u;
  let batch = tile / (u.across * u.down);
  if (batch >= u.batches) { return; }
  let column = (tile % u.across) * 4u;
  let row = (tile / u.across % u.down) * 4u;
  let a_base = u.a_offset + batch * u.a_batch;
  let b_base = u.b_offset + batch * u.b_batch;
  // Rows and columns past the end repeat the last one; their results are not stored.
  let rows = a_base + min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(u.m - 1u)) * u.a_row;
  let columns = b_base + min(vec4u(column, column + 1u, column + 2u, column + 3u), vec4u(u.n - 1u)) * u.b_column;
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  for (var k = 0u; k < u.k; k++) {
    let ka = k * u.a_column;
    let kb = columns + k * u.b_row;
    let c = vec4f(b[kb.x], b[kb.y], b[kb.z], b[kb.w]);
    s0 = fma(vec4f(a[rows.x + ka]), c, s0);
    s1 = fma(vec4f(a[rows.y + ka]), c, s1);
    s2 = fma(vec4f(a[rows.z + ka]), c, s2);
    s3 = fma(vec4f(a[rows.w + ka]), c, s3);
  }
  store_row(batch, row, column, s0);
  store_row(batch, row + 1u, column, s1);
  store_row(batch, row + 2u, column, s2);
  store_row(batch, row + 3u, column, s3);
}

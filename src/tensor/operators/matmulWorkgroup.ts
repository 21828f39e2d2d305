import { type Layout, type MatmulKernel, storingTile, type Tile, tiledFields } from "./matmulShader";

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const lines = (list: readonly string[]): string => list.join("\n");
const components = ["x", "y", "z", "w"] as const;

/** Products of a part of K that a workgroup holds at a time. */
const depthHeld = 8;

/** How many vectors of 4 `size` rows or columns are. */
const quadsOf = (size: number): number => size / 4;

/**
 * Fills NAME_tile, [depthHeld][rows / 4] vectors along the rows of the operand (along the columns of the second), for k
 * from `first` on. Invocations past the operand's end read its last elements, which nobody stores results of.
 */
function fill(name: "a" | "b", alongK: boolean, size: number, threads: number, limit: string): string {
  const quads = quadsOf(size);
  if (!alongK)
    return /* wgsl */ `
    for (var i = local_index; i < ${depthHeld * quads}u; i += ${threads}u) {
      let k = min(first + i / ${quads}u, k_end - 1u);
      ${name}_tile[i] = ${name}[${name}_base + k * ${name}_pitch + min((${name}_first >> 2u) + i % ${quads}u, (${limit} - 1u) >> 2u)];
    }`;
  const deep = quadsOf(depthHeld);
  return /* wgsl */ `
    for (var i = local_index; i < ${deep * quads}u; i += ${threads}u) {
      let k = i % ${deep}u;
      let quad = i / ${deep}u;
      let at = ${name}_base + min((first >> 2u) + k, (k_end - 1u) >> 2u);
${lines(range(4).map((j) => `      let v${j} = ${name}[at + min(${name}_first + 4u * quad + ${j}u, ${limit} - 1u) * ${name}_pitch];`))}
${lines(
  components.map(
    (component, c) =>
      `      ${name}_tile[(4u * k + ${c}u) * ${quads}u + quad] = vec4f(${range(4)
        .map((j) => `v${j}.${component}`)
        .join(", ")});`,
  ),
)}
    }`;
}

/**
 * A register tile an invocation, from parts of the operands that the workgroup shares: pays on a GPU, costs on a
 * software adapter. Each result is accumulated over k in ascending order, by fused multiply-adds, as in `tiledMatmul`.
 */
export function workgroupMatmul(layout: Layout, tile: Tile): MatmulKernel {
  const { rows, columns, width, height } = tile;
  const [down, across] = [rows * height, columns * width];
  const [rowQuads, columnQuads] = [quadsOf(rows), quadsOf(columns)];
  const threads = width * height;
  const products = range(rows).flatMap((i) =>
    range(columnQuads).map((j) => `s${i}_${j} = fma(vec4f(r${i >> 2}.${components[i & 3]}), c${j}, s${i}_${j});`),
  );
  const codeThat = (stores: string) => /* wgsl */ `
var<workgroup> a_tile: array<vec4f, ${depthHeld * quadsOf(down)}>;
var<workgroup> b_tile: array<vec4f, ${depthHeld * quadsOf(across)}>;
@compute @workgroup_size(${width}, ${height})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u,
  @builtin(local_invocation_index) local_index: u32,
) {
  let tile = group.x + (group.y + group.z * groups.y) * groups.x;
  let batch = tile / (u.across * u.down);
  // Alike for the whole workgroup.
  if (batch >= u.batches) { return; }
  let a_first = (tile / u.across % u.down) * ${down}u;
  let b_first = (tile % u.across) * ${across}u;
  // The last part of a sum that is cut may be shorter.
  let k_end = min(u.k, u.depth - (batch % u.parts) * u.k);
  let a_pitch = u.a_pitch >> 2u;
  let b_pitch = u.b_pitch >> 2u;
  let a_base = (u.a_offset + batch * u.a_batch) >> 2u;
  let b_base = (u.b_offset + batch * u.b_batch) >> 2u;
${lines(range(rows).flatMap((i) => range(columnQuads).map((j) => `  var s${i}_${j} = vec4f();`)))}
  for (var first = 0u; first < k_end; first += ${depthHeld}u) {
    ${fill("a", layout[0] === "N", down, threads, "u.m")}
    ${fill("b", layout[1] === "T", across, threads, "u.n")}
    workgroupBarrier();
    let held = min(${depthHeld}u, k_end - first);
    for (var k = 0u; k < held; k++) {
${lines(range(rowQuads).map((i) => `      let r${i} = a_tile[k * ${quadsOf(down)}u + local.y * ${rowQuads}u + ${i}u];`))}
${lines(range(columnQuads).map((j) => `      let c${j} = b_tile[k * ${quadsOf(across)}u + local.x * ${columnQuads}u + ${j}u];`))}
      ${lines(products)}
    }
    workgroupBarrier();
  }
  let row = a_first + local.y * ${rows}u;
  let column = b_first + local.x * ${columns}u;
  if (row >= u.m || column >= u.n) { return; }
  ${stores}
}`;
  const name = `matmul ${layout} ${down}x${across} shared`;
  return { name, fields: tiledFields, type: "vec4f", ...storingTile(tile, codeThat) };
}

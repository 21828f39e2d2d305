import strided from "../../../shaders/matmulStrided.wgsl?raw";

/**
 * Which way each operand lies. The first letter is A [M, K]: N has its rows contiguous (vectors of 4 along K), T its
 * columns (along M). The second is B [K, N]: N has its rows contiguous (along N), T its columns (along K).
 */
export type Layout = "NN" | "NT" | "TN";

/** `rows` x `columns` results an invocation, `width` x `height` invocations a workgroup. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  readonly width: number;
  readonly height: number;
}

const components = ["x", "y", "z", "w"] as const;
const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const lines = (list: readonly string[]): string => list.join("\n");

/** What of a producer doesn't depend on the operands' sizes. */
export interface MatmulKernel {
  readonly name: string;
  readonly fields: string;
  readonly code: string;
  /** See `Producer`; for rows of whole vectors. */
  readonly quadCode: string;
  /** The type of the operands' elements. */
  readonly type: string;
}

const commonFields = `m: u32, n: u32, k: u32, batches: u32, across: u32, down: u32,
  a_batch: u32, b_batch: u32, a_offset: u32, b_offset: u32,`;

/** The fields of kernels that take vectors of 4. */
export const tiledFields = `${commonFields} a_pitch: u32, b_pitch: u32, depth: u32, parts: u32,`;

/** Stores four neighbours of a row, as far as they are inside. */
const storeRow = /* wgsl */ `
fn store_row(batch: u32, row: u32, column: u32, value: vec4f) {
  if (row >= u.m) { return; }
  let at = (batch * u.m + row) * u.n + column;
  if (column < u.n) { store(at, value.x); }
  if (column + 1u < u.n) { store(at + 1u, value.y); }
  if (column + 2u < u.n) { store(at + 2u, value.z); }
  if (column + 3u < u.n) { store(at + 3u, value.w); }
}
`;
/** Where all rows are whole vectors. */
const storeRowOfQuads = /* wgsl */ `
fn store_row(batch: u32, row: u32, column: u32, value: vec4f) {
  if (row < u.m && column < u.n) { store_quad((batch * u.m + row) * u.n + column, value); }
}
`;

/** Takes operands of any strides; for small products and unaligned ones. */
export const stridedMatmul: MatmulKernel = {
  name: "matmul by strides",
  fields: `${commonFields} a_row: u32, a_column: u32, b_row: u32, b_column: u32,`,
  code: storeRow + strided,
  quadCode: storeRowOfQuads + strided,
  type: "f32",
};

/**
 * A register tile an invocation, unrolled, without workgroup memory. Each result is accumulated over k in ascending
 * order, by fused multiply-adds, whatever the layout and the tile, so that all variants give the same bits.
 */
export function tiledMatmul(layout: Layout, { rows, columns, width, height }: Tile): MatmulKernel {
  const aAlongK = layout[0] === "N";
  const bAlongK = layout[1] === "T";
  const quads = columns / 4;

  const loadA = aAlongK ? range(rows).map((i) => `let a${i} = a[a_row${i} + (k >> 2u)];`) : [];
  const loadB = bAlongK ? range(columns).map((j) => `let t${j} = b[b_column${j} + (k >> 2u)];`) : [];
  /** The products of one k; `at` says where in the vectors along k it is. */
  const step = (k: string, component: string): string => {
    const rowVectors = aAlongK ? [] : range(rows / 4).map((i) => `let r${i} = a[a_at${i} + (${k}) * a_pitch];`);
    const columnVectors = range(quads).map((j) =>
      bAlongK
        ? `let c${j} = vec4f(${range(4)
            .map((l) => `t${4 * j + l}.${component}`)
            .join(", ")});`
        : `let c${j} = b[b_at${j} + (${k}) * b_pitch];`,
    );
    const a = (i: number) => (aAlongK ? `a${i}.${component}` : `r${i >> 2}.${components[i & 3]}`);
    const products = range(rows).flatMap((i) =>
      range(quads).map((j) => `s${i}_${j} = fma(vec4f(${a(i)}), c${j}, s${i}_${j});`),
    );
    return `{\n${lines([...rowVectors, ...columnVectors, ...products])}\n}`;
  };
  const loop =
    aAlongK || bAlongK
      ? `for (var k = 0u; k < k_end; k += 4u) {
${lines([...loadA, ...loadB])}
${components.map((component, i) => step(`k + ${i}u`, component)).join("\n")}
}`
      : `for (var k = 0u; k < k_end; k++) ${step("k", "x")}`;

  const codeThat = (stores: string) => /* wgsl */ `
@compute @workgroup_size(${width}, ${height})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u,
) {
  let tile = group.x + (group.y + group.z * groups.y) * groups.x;
  let batch = tile / (u.across * u.down);
  let column = ((tile % u.across) * ${width}u + local.x) * ${columns}u;
  let row = ((tile / u.across % u.down) * ${height}u + local.y) * ${rows}u;
  if (batch >= u.batches || column >= u.n || row >= u.m) { return; }
  // The last part of a sum that is cut may be shorter.
  let k_end = min(u.k, u.depth - (batch % u.parts) * u.k);
  let a_pitch = u.a_pitch >> 2u;
  let b_pitch = u.b_pitch >> 2u;
  let a_base = (u.a_offset + batch * u.a_batch) >> 2u;
  let b_base = (u.b_offset + batch * u.b_batch) >> 2u;
${
  aAlongK
    ? lines(range(rows).map((i) => `  let a_row${i} = a_base + min(row + ${i}u, u.m - 1u) * a_pitch;`))
    : lines(range(rows / 4).map((i) => `  let a_at${i} = a_base + min((row >> 2u) + ${i}u, (u.m - 1u) >> 2u);`))
}
${
  bAlongK
    ? lines(range(columns).map((j) => `  let b_column${j} = b_base + min(column + ${j}u, u.n - 1u) * b_pitch;`))
    : lines(range(quads).map((j) => `  let b_at${j} = b_base + min((column >> 2u) + ${j}u, (u.n - 1u) >> 2u);`))
}
${lines(range(rows).flatMap((i) => range(quads).map((j) => `  var s${i}_${j} = vec4f();`)))}
${loop}
  ${stores}
}`;
  const name = `matmul ${layout} ${rows}x${columns}`;
  return { name, fields: tiledFields, type: "vec4f", ...storingTile({ rows, columns }, codeThat) };
}

/** A kernel's code, with what stores an invocation's sums, `s0_0`, `s0_1`, ..., of the tile at `row` and `column`. */
export function storingTile(
  { rows, columns }: Pick<Tile, "rows" | "columns">,
  codeThat: (stores: string) => string,
): Pick<MatmulKernel, "code" | "quadCode"> {
  const quads = columns / 4;
  const sums = range(rows).flatMap((i) => range(quads).map((j) => `s${i}_${j}`));
  const stores = (row: string) => /* wgsl */ `var tile_sums = array<vec4f, ${rows * quads}>(${sums.join(", ")});
  let row_end = min(${rows}u, u.m - row);
  let column_end = min(${columns}u, u.n - column);
  for (var i = 0u; i < row_end; i++) {
    let first = (batch * u.m + row + i) * u.n + column;
    ${row}
  }`;
  const sum = `tile_sums[i * ${quads}u + (j >> 2u)]`;
  return {
    code: codeThat(stores(`for (var j = 0u; j < column_end; j++) { store(first + j, ${sum}[j & 3u]); }`)),
    quadCode: codeThat(stores(`for (var j = 0u; j < column_end; j += 4u) { store_quad(first + j, ${sum}); }`)),
  };
}

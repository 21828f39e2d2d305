import type { MatmulLayout } from "./rows";

/*
 * A matmul written by hand for one shape at a time: the bar for Ringlet's. PINNED: changing it changes what all shares
 * of it mean. Workgroups of 4x4, 16x16 results an invocation in registers, vectors of 4, no workgroup memory. M and N are
 * multiples of 64 and K of 4; nothing is checked.
 */

const invocations = 4;
const tile = 16;
const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const lines = (list: readonly string[]) => list.join("\n");
const xyzw = ["x", "y", "z", "w"] as const;

/** Whether the kernel can compute this shape. */
export const isPinnedShape = (m: number, n: number, k: number): boolean =>
  m % (invocations * tile) === 0 && n % (invocations * tile) === 0 && k % 4 === 0;

/** A [M, K] or, for T, stored as [K, M]; B [K, N] or, for T, stored as [N, K]. */
export function pinnedMatmulShader(layout: MatmulLayout, m: number, n: number, k: number): string {
  const [aIsTransposed, bIsTransposed] = [layout[0] === "T", layout[1] === "T"];
  const quads = range(tile / 4);
  const load = [
    ...(aIsTransposed ? [] : range(tile).map((i) => `let a${i} = a[(row + ${i}u) * ${k / 4}u + q];`)),
    ...(bIsTransposed ? range(tile).map((j) => `let t${j} = b[(column + ${j}u) * ${k / 4}u + q];`) : []),
  ];
  const steps = xyzw.map((component, i) => {
    const left = aIsTransposed
      ? quads.map((v) => `let l${v} = a[(4u * q + ${i}u) * ${m / 4}u + row / 4u + ${v}u];`)
      : [];
    const right = quads.map((v) =>
      bIsTransposed
        ? `let r${v} = vec4f(${range(4)
            .map((j) => `t${4 * v + j}.${component}`)
            .join(", ")});`
        : `let r${v} = b[(4u * q + ${i}u) * ${n / 4}u + column / 4u + ${v}u];`,
    );
    const scalar = (r: number) => (aIsTransposed ? `l${r >> 2}.${xyzw[r & 3]}` : `a${r}.${component}`);
    const sums = range(tile).flatMap((r) =>
      quads.map((v) => `s${r}_${v} = fma(vec4f(${scalar(r)}), r${v}, s${r}_${v});`),
    );
    return `{\n${lines([...left, ...right, ...sums])}\n}`;
  });
  return `
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4f>;
@compute @workgroup_size(${invocations}, ${invocations})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let row = id.y * ${tile}u;
  let column = id.x * ${tile}u;
  ${lines(range(tile).flatMap((r) => quads.map((v) => `var s${r}_${v} = vec4f();`)))}
  for (var q = 0u; q < ${k / 4}u; q++) {
    ${lines([...load, ...steps])}
  }
  ${lines(range(tile).flatMap((r) => quads.map((v) => `c[(row + ${r}u) * ${n / 4}u + column / 4u + ${v}u] = s${r}_${v};`)))}
}`;
}

/** The pinned kernel with its operands on a device of its own. */
export async function startPinnedMatmul(
  layout: MatmulLayout,
  [m, n, k]: readonly [m: number, n: number, k: number],
  operands: readonly Float32Array<ArrayBuffer>[],
  device: GPUDevice,
): Promise<{ run(): void; values(): Promise<Float32Array>; dispose(): void }> {
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
  const buffers = [...operands.map(({ byteLength }) => byteLength), 4 * m * n].map((size) =>
    device.createBuffer({ size, usage: STORAGE | COPY_DST | COPY_SRC }),
  );
  for (const [i, values] of operands.entries()) device.queue.writeBuffer(buffers[i]!, 0, values);
  const module = device.createShaderModule({ code: pinnedMatmulShader(layout, m, n, k) });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const bindings = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  return {
    run() {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bindings);
      pass.dispatchWorkgroups(n / (tile * invocations), m / (tile * invocations));
      pass.end();
      device.queue.submit([encoder.finish()]);
    },
    async values() {
      const copy = device.createBuffer({ size: 4 * m * n, usage: COPY_DST | MAP_READ });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffers[2]!, 0, copy, 0, 4 * m * n);
      device.queue.submit([encoder.finish()]);
      await copy.mapAsync(GPUMapMode.READ);
      const values = new Float32Array(copy.getMappedRange().slice(0));
      copy.destroy();
      return values;
    },
    dispose() {
      for (const buffer of buffers) buffer.destroy();
    },
  };
}

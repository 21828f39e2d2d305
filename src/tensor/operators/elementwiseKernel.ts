import { type Shader, spread } from "../../gpu";
import { type ComputeType, wgslType } from "../dtype";
import { type Shape, sizeOf } from "../shape";
import { type BufferValue, innerOffset, type Lowering, type ScalarReference, type Uniform, type Value } from "./table";

/** What an elementwise kernel computes for one element. */
export interface ElementFunction {
  readonly name: string;
  /** The WGSL statements of a function of `a`, `b`, `c` (the operands) and `s0`, `s1`, ... (f32 scalars). */
  readonly body: string;
  /** WGSL functions that the body calls. */
  readonly helpers?: string;
  readonly scalars?: number;
  /** Whether the body also takes `o`, the result's element so far: an update in place. */
  readonly updates?: boolean;
  /** Kernels made so far, by the operands' kinds. */
  readonly shaders: Map<number, Shader>;
}

export const elementFunction = (of: Omit<ElementFunction, "shaders">): ElementFunction => ({
  ...of,
  shaders: new Map(),
});

const workgroupSize = 64;
const perThread = 4;
const maxRank = 8;
const letters = ["a", "b", "c", "d"] as const;
const dtypeCode = { float32: 0, int32: 1, bool: 2 } as const satisfies Record<ComputeType, number>;

/**
 * Stores `f(operands)` in `out`, with broadcasting: fused with what the operands are computed from where `out` is in one
 * piece, and otherwise by a kernel that walks by strides and serves all shapes.
 */
export function emitElementwise(
  lowering: Lowering,
  f: ElementFunction,
  operands: readonly Value[],
  out: BufferValue,
  scalars: readonly ScalarReference[] = [],
): void {
  const count = sizeOf(out.shape);
  if (count === 0 || (scalars.length === 0 && lowering.store(f, operands, out))) return;
  const buffers = operands.filter((value) => value.kind === "buffer");
  const views = collapse(
    out.shape,
    [out, ...buffers].map((value) => broadcastStrides(value, out.shape)),
  );
  const walked = [out, ...buffers];
  const walk = walkOf(views, walked);
  const constants = operands.flatMap((value): Uniform[] =>
    value.kind === "constant" ? [{ scalar: value.scalar, dtype: value.dtype }] : [],
  );
  const tail: Uniform[] = [...constants, ...scalars.map((scalar) => ({ scalar, dtype: "float32" as const }))];
  const head = walk === "flat" ? [Math.ceil(count / 4)] : [...stridedLayout(views, walked), count, views.shape.length];
  lowering.dispatch({
    shader: shaderOf(f, operands, out.dtype, walk),
    bindings: [...buffers, out],
    uniforms: [...head, ...tail],
    grid: spread(Math.ceil(count / (workgroupSize * perThread))),
    work: count * (operands.length + 1),
  });
}

/**
 * How a kernel goes through the elements. `flat`: all lie alike, by vectors of 4. `quads`: by vectors of 4 along the
 * innermost dimension, where each value is contiguous or constant. `strided`: one by one.
 */
type Walk = "flat" | "quads" | "strided";
const walkCode = { flat: 0, quads: 1, strided: 2 } as const satisfies Record<Walk, number>;

function walkOf({ shape, strides }: StridedViews, [out, ...operands]: readonly BufferValue[]): Walk {
  const values = [out!, ...operands];
  const isFlat =
    shape.length <= 1 &&
    strides.every((of) => (of[0] ?? 1) === 1) &&
    values.every((value) => innerOffset(value) === 0) &&
    ownsItsPadding(out!);
  if (isFlat) return "flat";
  const inQuads = (value: BufferValue, of: readonly number[]) =>
    of[0] === 1 && innerOffset(value) % 4 === 0 && of.every((stride, d) => d === 0 || stride % 4 === 0);
  const isQuads =
    shape.length > 0 &&
    shape[0]! % 4 === 0 &&
    inQuads(out!, strides[0]!) &&
    operands.every((value, i) => strides[i + 1]![0] === 0 || inQuads(value, strides[i + 1]!));
  return isQuads ? "quads" : "strided";
}

/** Whether what lies behind the last element, up to a multiple of 4, may be overwritten. */
const ownsItsPadding = (out: BufferValue): boolean =>
  sizeOf(out.shape) % 4 === 0 || (out.offset === 0 && out.root.bytes === sizeOf(out.shape) * 4 && !out.root.isShared);

export function broadcastStrides(value: BufferValue, shape: Shape): number[] {
  const lead = shape.length - value.shape.length;
  return shape.map((_, d) => (d < lead || value.shape[d - lead] === 1 ? 0 : value.strides[d - lead]!));
}

export interface StridedViews {
  /** Innermost dimension first. */
  readonly shape: number[];
  /** By value, innermost first. */
  readonly strides: number[][];
}

/** Drops dimensions of size 1 and joins neighbours that every value walks through evenly. */
export function collapse(shape: Shape, strides: readonly (readonly number[])[]): StridedViews {
  const result: StridedViews = { shape: [], strides: strides.map(() => []) };
  for (let d = shape.length - 1; d >= 0; d--) {
    const size = shape[d]!;
    if (size === 1) continue;
    const last = result.shape.length - 1;
    if (last >= 0 && result.strides.every((of, v) => strides[v]![d] === of[last]! * result.shape[last]!)) {
      result.shape[last]! *= size;
      continue;
    }
    result.shape.push(size);
    for (const [v, of] of result.strides.entries()) of.push(strides[v]![d]!);
  }
  return result;
}

function stridedLayout({ shape, strides }: StridedViews, values: readonly BufferValue[]): number[] {
  if (shape.length > maxRank)
    throw new Error(`A view of shape [${shape.toReversed().join(", ")}] has over ${maxRank} separate dimensions.`);
  if (shape.length === 0) {
    shape.push(1);
    for (const of of strides) of.push(0);
  }
  const padded = (list: readonly number[]) => [...list, ...new Array<number>(maxRank - list.length).fill(0)];
  const offsets = values.map(innerOffset);
  return [
    ...padded(shape),
    ...strides.flatMap(padded),
    ...offsets,
    ...new Array<number>(letters.length + 1 - offsets.length).fill(0),
  ];
}

function shaderOf(f: ElementFunction, operands: readonly Value[], out: ComputeType, walk: Walk): Shader {
  let key: number = walkCode[walk];
  key = key * 4 + dtypeCode[out];
  for (const value of operands) key = key * 8 + dtypeCode[value.dtype] * 2 + (value.kind === "constant" ? 1 : 0);
  let shader = f.shaders.get(key);
  if (!shader) {
    shader = writers[walk](f, operands, out);
    f.shaders.set(key, shader);
  }
  return shader;
}

const writers = { flat: flatShader, quads: quadsShader, strided: stridedShader } as const;

function parameters(f: ElementFunction, operands: readonly Value[], out: ComputeType): string {
  const scalars = Array.from({ length: f.scalars ?? 0 }, (_, i) => `s${i}: f32`);
  const updated = f.updates ? [`o: ${wgslType[out]}`] : [];
  return [...updated, ...operands.map((value, i) => `${letters[i]}: ${wgslType[value.dtype]}`), ...scalars].join(", ");
}

function tailFields(f: ElementFunction, operands: readonly Value[]): string {
  const constants = operands.flatMap((value, i) =>
    value.kind === "constant" ? [`  ${letters[i]}: ${wgslType[value.dtype]},`] : [],
  );
  const scalars = Array.from({ length: f.scalars ?? 0 }, (_, i) => `  s${i}: f32,`);
  return [...constants, ...scalars].join("\n");
}

function call(f: ElementFunction, operands: readonly Value[], load: (letter: string) => string): string {
  const scalars = Array.from({ length: f.scalars ?? 0 }, (_, i) => `u.s${i}`);
  return `f(${[
    ...(f.updates ? [load("o")] : []),
    ...operands.map((value, i) => (value.kind === "constant" ? `u.${letters[i]}` : load(letters[i]!))),
    ...scalars,
  ].join(", ")})`;
}

const accessesOf = (operands: readonly Value[]) => [
  ...operands.flatMap((value) => (value.kind === "buffer" ? ["read" as const] : [])),
  "write" as const,
];

function declarations(operands: readonly Value[], out: ComputeType, element: (type: string) => string): string {
  const lines: string[] = [];
  for (const [i, value] of operands.entries())
    if (value.kind === "buffer")
      lines.push(
        `@group(0) @binding(${lines.length + 1}) var<storage, read> in_${letters[i]}: array<${element(wgslType[value.dtype])}>;`,
      );
  lines.push(`@group(0) @binding(${lines.length + 1}) var<storage, read_write> out: array<${element(wgslType[out])}>;`);
  return lines.join("\n");
}

function flatShader(f: ElementFunction, operands: readonly Value[], out: ComputeType): Shader {
  const buffers = operands.flatMap((value, i) => (value.kind === "buffer" ? [letters[i]!] : []));
  const lane = (component: string) => call(f, operands, (letter) => `${letter}.${component}`);
  const code = /* wgsl */ `
struct Uniforms {
  quads: u32,
${tailFields(f, operands)}
}
@group(0) @binding(0) var<uniform> u: Uniforms;
${declarations(operands, out, (type) => `vec4<${type}>`)}
${f.helpers ?? ""}
fn f(${parameters(f, operands, out)}) -> ${wgslType[out]} { ${f.body} }
@compute @workgroup_size(${workgroupSize})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * ${workgroupSize}u;
  if (i >= u.quads) { return; }
${buffers.map((letter) => `  let ${letter} = in_${letter}[i];`).join("\n")}
${f.updates ? "  let o = out[i];" : ""}
  out[i] = vec4<${wgslType[out]}>(${["x", "y", "z", "w"].map(lane).join(", ")});
}`;
  return { name: f.name, code, bindings: accessesOf(operands) };
}

/** The uniforms of a kernel that walks by strides: `walked` are the result, "o", and the operands in buffers. */
function stridedUniforms(f: ElementFunction, operands: readonly Value[], walked: readonly string[]): string {
  const vectors = maxRank / 4;
  return `struct Uniforms {
  shape: array<vec4u, ${vectors}>,
${walked.map((v) => `  stride_${v}: array<vec4u, ${vectors}>,`).join("\n")}
${Array.from({ length: letters.length + 1 }, (_, i) => `  offset_${walked[i] ?? `unused${i}`}: u32,`).join("\n")}
  count: u32,
  rank: u32,
${tailFields(f, operands)}
}
@group(0) @binding(0) var<uniform> u: Uniforms;`;
}

/** WGSL statements that find where each value's element `i` is, and leave its innermost coordinate in `position`. */
function locate(walked: readonly string[]): string {
  return `position = i % inner;
      var rest = i / inner;
${walked.map((v) => `      at_${v} = u.offset_${v} + position * u.stride_${v}[0].x;`).join("\n")}
      for (var d = 1u; d < u.rank; d++) {
        let size = u.shape[d >> 2u][d & 3u];
        let coordinate = rest % size;
        rest /= size;
${walked.map((v) => `        at_${v} += coordinate * u.stride_${v}[d >> 2u][d & 3u];`).join("\n")}
      }`;
}

function quadsShader(f: ElementFunction, operands: readonly Value[], out: ComputeType): Shader {
  const buffers = operands.flatMap((value, i) => (value.kind === "buffer" ? [{ letter: letters[i]!, value }] : []));
  const walked = ["o", ...buffers.map(({ letter }) => letter)];
  const lane = (component: string) => call(f, operands, (letter) => `${letter}.${component}`);
  const load = ({ letter, value: { dtype } }: (typeof buffers)[number]) => `
  var ${letter} = in_${letter}[at_${letter} >> 2u];
  if (u.stride_${letter}[0].x == 0u) { ${letter} = vec4<${wgslType[dtype]}>(${letter}[at_${letter} & 3u]); }`;
  const code = /* wgsl */ `
${stridedUniforms(f, operands, walked)}
${declarations(operands, out, (type) => `vec4<${type}>`)}
${f.helpers ?? ""}
fn f(${parameters(f, operands, out)}) -> ${wgslType[out]} { ${f.body} }
@compute @workgroup_size(${workgroupSize})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = (id.x + (id.y + id.z * n.y) * n.x * ${workgroupSize}u) * 4u;
  if (i >= u.count) { return; }
  let inner = u.shape[0].x;
  var position = 0u;
${walked.map((v) => `  var at_${v} = 0u;`).join("\n")}
  ${locate(walked)}
${buffers.map(load).join("")}
${f.updates ? "  let o = out[at_o >> 2u];" : ""}
  out[at_o >> 2u] = vec4<${wgslType[out]}>(${["x", "y", "z", "w"].map(lane).join(", ")});
}`;
  return { name: `${f.name} by quads`, code, bindings: accessesOf(operands) };
}

function stridedShader(f: ElementFunction, operands: readonly Value[], out: ComputeType): Shader {
  const buffers = operands.flatMap((value, i) => (value.kind === "buffer" ? [letters[i]!] : []));
  const walked = ["o", ...buffers];
  const code = /* wgsl */ `
${stridedUniforms(f, operands, walked)}
${declarations(operands, out, (type) => type)}
${f.helpers ?? ""}
fn f(${parameters(f, operands, out)}) -> ${wgslType[out]} { ${f.body} }
@compute @workgroup_size(${workgroupSize})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let first = (id.x + (id.y + id.z * n.y) * n.x * ${workgroupSize}u) * ${perThread}u;
  let end = min(first + ${perThread}u, u.count);
  let inner = u.shape[0].x;
  var position = 0u;
  var left = 0u;
${walked.map((v) => `  var at_${v} = 0u;`).join("\n")}
  for (var i = first; i < end; i++) {
    if (left == 0u) {
      ${locate(walked)}
      left = inner - position;
    }
    out[at_o] = ${call(f, operands, (letter) => (letter === "o" ? "out[at_o]" : `in_${letter}[at_${letter}]`))};
${walked.map((v) => `    at_${v} += u.stride_${v}[0].x;`).join("\n")}
    left -= 1u;
  }
}`;
  return { name: `${f.name} by strides`, code, bindings: accessesOf(operands) };
}

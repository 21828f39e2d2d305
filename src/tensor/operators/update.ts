import { type Shader, spread } from "../../gpu";
import { apply, noGrad } from "../apply";
import { describeShape, OperatorError, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { persistentStorage } from "./inPlace";
import type { Operator } from "./table";

/** What an update computes from the elements of several tensors at one place. */
export type UpdateFormula = {
  readonly name: string;
  /**
   * WGSL statements that assign to `t0`, `t1`, ..., the values (vec4f) of the tensors, those that are changed first.
   * `s0`, `s1`, ... are the scalars (vec4f).
   */
  readonly statements: string;
};

type UpdateAttributes = UpdateFormula & { readonly changed: number; readonly gated: boolean };

/** By statements, with and without a gate: a formula's text holds all else that its kernel depends on. */
const shaders = new Map<string, Shader>();

function shaderOf(attributes: UpdateAttributes, tensors: number, scalars: number): Shader {
  const { name, statements, changed, gated } = attributes;
  const bindings = tensors + (gated ? 1 : 0);
  const key = `${gated ? "gated" : "open"} ${statements}`;
  const known = shaders.get(key);
  if (known?.bindings.length === bindings) return known;
  const list = (count: number, line: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => line(i)).join("\n");
  const access = (i: number) => (i < changed ? "write" : "read");
  const code = /* wgsl */ `
struct Uniforms {
  count: u32,
${list(scalars, (i) => `  s${i}: f32,`)}
}
@group(0) @binding(0) var<uniform> u: Uniforms;
${list(tensors, (i) => `@group(0) @binding(${i + 1}) var<storage, ${i < changed ? "read_write" : "read"}> tensor${i}: array<vec4f>;`)}
${gated ? `@group(0) @binding(${bindings}) var<storage, read> gate: array<u32>;` : ""}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count${gated ? " || gate[0] == 0u" : ""}) { return; }
${list(scalars, (k) => `  let s${k} = vec4f(u.s${k});`)}
${list(tensors, (k) => `  var t${k} = tensor${k}[i];`)}
${statements}
${list(changed, (k) => `  tensor${k}[i] = t${k};`)}
}`;
  const shader: Shader = { name, code, bindings: Array.from({ length: bindings }, (_, i) => access(i)) };
  shaders.set(key, shader);
  return shader;
}

/** Changes its first `changed` inputs, which all have the first one's length; where it is gated, the last is the gate. */
const updateRow: Operator<UpdateAttributes> = {
  name: "update_",
  effect: true,
  infer: ([target]) => target!,
  lower(lowering, { inputs, attributes, scalars, shape }) {
    const count = Math.ceil(sizeOf(shape) / 4);
    const target = lowering.buffer(inputs[0]!);
    const tensors = inputs.length - (attributes.gated ? 1 : 0);
    lowering.dispatch({
      shader: shaderOf(attributes, tensors, scalars.length),
      bindings: inputs.map((input) => lowering.dense(input)),
      uniforms: [count, ...scalars.map((scalar) => ({ scalar, dtype: "float32" as const }))],
      grid: spread(Math.ceil(count / 64)),
      work: 4 * count * (tensors + 4),
    });
    return target;
  },
};

export const update: readonly Operator[] = [updateRow];

/**
 * Runs a formula once for each place of float32 tensors of one length, after everything recorded before: an optimizer's
 * step in one kernel. Not differentiable.
 * @param changed leaves that the formula assigns to, `t0` and on.
 * @param read further tensors.
 * @param scalars may change from step to step without a new plan.
 * @param gate one element of any type: where it is 0 on the GPU, everything stays as it is, to the bit.
 * @throws OperatorError for lengths that differ, a gate of several elements, and a target without memory of its own.
 */
export function update_(
  formula: UpdateFormula,
  changed: readonly Tensor[],
  read: readonly Tensor[],
  scalars: readonly number[],
  gate: Tensor | null = null,
): void {
  const tensors = [...changed, ...read];
  for (const [i, tensor] of tensors.entries())
    if (tensor.numel !== tensors[0]!.numel || tensor.dtype !== "float32")
      throw new OperatorError(
        formula.name,
        `tensor ${i} is ${tensor.dtype}${describeShape(tensor.shape)}; expected float32 of ${tensors[0]!.numel} elements`,
      );
  if (gate && gate.numel !== 1)
    throw new OperatorError(formula.name, `the gate has shape ${describeShape(gate.shape)}; expected one element`);
  const memories = changed.map((tensor) => persistentStorage(formula.name, tensor).memory);
  const { name, statements } = formula;
  const attributes = { name, statements, changed: changed.length, gated: gate !== null };
  noGrad(() => apply(updateRow, gate ? [...tensors, gate] : tensors, attributes, scalars));
  for (const memory of memories) memory.version += 1;
}

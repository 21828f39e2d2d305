import softmaxCode from "../../../shaders/softmax.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { normalizeDim, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { exp, mul, sub, to } from "./elementwise";
import { sum } from "./reduction";
import type { BufferValue, Lowering, Operator } from "./table";
import { reshape } from "./views";

type DimAttributes = { readonly dim: number };

/** The rows of a tensor along `dim`: `length` elements, `inner` apart. */
function rowsOf(shape: Shape, dim: number) {
  const length = shape[dim]!;
  const inner = sizeOf(shape.slice(dim + 1));
  return { length, inner, rows: length === 0 ? 0 : sizeOf(shape) / length };
}

const forwardShader = (name: string, finish: string): Shader => ({
  name,
  bindings: ["read", "write"],
  code: softmaxCode.replace("// finish", finish),
});
const softmaxShader = forwardShader("softmax", "out[at] = exp(x - top) / total;");
const logSoftmaxShader = forwardShader("logSoftmax", "out[at] = (x - top) - log(total);");

const gradientShader = (name: string, summed: string, result: string): Shader => ({
  name,
  bindings: ["read", "read", "write"],
  code: /* wgsl */ `
struct Uniforms { rows: u32, length: u32, inner: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read> result: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let row = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (row >= u.rows) { return; }
  let first = (row / u.inner) * u.length * u.inner + row % u.inner;
  let end = first + u.length * u.inner;
  var total = 0.0;
  for (var at = first; at < end; at += u.inner) { total += ${summed}; }
  for (var at = first; at < end; at += u.inner) { out[at] = ${result}; }
}`,
});
const softmaxGradientShader = gradientShader(
  "softmaxGradient",
  "gradient[at] * result[at]",
  "(gradient[at] - total) * result[at]",
);
const logSoftmaxGradientShader = gradientShader(
  "logSoftmaxGradient",
  "gradient[at]",
  "gradient[at] - exp(result[at]) * total",
);

function emitRows(
  lowering: Lowering,
  shader: Shader,
  bindings: readonly BufferValue[],
  shape: Shape,
  dim: number,
): void {
  const { rows, length, inner } = rowsOf(shape, dim);
  lowering.dispatch({
    shader,
    bindings,
    uniforms: [rows, length, inner],
    grid: spread(Math.ceil(rows / 64)),
    work: rows * length * 20,
  });
}

function forwardRow(shader: Shader, backward: Operator<DimAttributes>["backward"]): Operator<DimAttributes> {
  return {
    name: shader.name,
    infer: ([input]) => input!,
    lower(lowering, { inputs: [input], attributes: { dim }, shape }) {
      const out = lowering.result();
      emitRows(lowering, shader, [lowering.dense(input!), out], shape, dim);
      return out;
    },
    ...(backward && { backward }),
  };
}

function gradientRow(shader: Shader, backward: Operator<DimAttributes>["backward"]): Operator<DimAttributes> {
  return {
    name: shader.name,
    infer: ([gradient]) => gradient!,
    lower(lowering, { inputs: [gradient, result], attributes: { dim }, shape }) {
      const out = lowering.result();
      emitRows(lowering, shader, [lowering.dense(gradient!), lowering.dense(result!), out], shape, dim);
      return out;
    },
    ...(backward && { backward }),
  };
}

const softmaxRow = forwardRow(softmaxShader, ({ gradient, output, attributes }) => [
  apply(softmaxGradientRow, [gradient, output], attributes),
]);
const logSoftmaxRow = forwardRow(logSoftmaxShader, ({ gradient, output, attributes }) => [
  apply(logSoftmaxGradientRow, [gradient, output], attributes),
]);
/** Inputs: the gradient g and the result y. (g - sum(g y)) y, whose matrix over g is symmetric. */
const softmaxGradientRow = gradientRow(
  softmaxGradientShader,
  ({ gradient, inputs: [g, y], attributes: { dim }, needs }) => {
    const total = (a: Tensor) => sum(mul(a, y!), dim, true);
    return [
      needs[0] ? apply(softmaxGradientRow, [gradient, y!], { dim }) : null,
      needs[1] ? sub(mul(gradient, sub(g!, total(g!))), mul(g!, total(gradient))) : null,
    ];
  },
);
/** Inputs: the gradient g and the result y. g - exp(y) sum(g). */
const logSoftmaxGradientRow = gradientRow(
  logSoftmaxGradientShader,
  ({ gradient, inputs: [g, y], attributes: { dim }, needs }) => {
    const weighted = mul(gradient, exp(y!));
    return [
      needs[0] ? sub(gradient, sum(weighted, dim, true)) : null,
      needs[1] ? mul(mul(weighted, -1), sum(g!, dim, true)) : null,
    ];
  },
);

export const softmax: readonly Operator[] = [softmaxRow, logSoftmaxRow, softmaxGradientRow, logSoftmaxGradientRow];

const over = (row: Operator<DimAttributes>) => (input: Tensor, dim: number) => {
  const d = normalizeDim(row.name, dim, input.ndim);
  const values = to(input, "float32");
  return values.ndim === 0
    ? reshape(apply(row, [reshape(values, [1])], { dim: 0 }), [])
    : apply(row, [values], { dim: d });
};

/** exp(x) / sum(exp(x)) along `dim`, without overflow. */
export const softmaxOver = over(softmaxRow);
/** log(softmax(x)) along `dim`, without underflow. */
export const logSoftmax = over(logSoftmaxRow);
/** The gradient of softmax's input from that of its result. */
export const softmaxGradient = (gradient: Tensor, result: Tensor, dim: number): Tensor =>
  apply(softmaxGradientRow, [gradient, result], { dim });

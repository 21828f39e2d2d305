import { type Shader, spread } from "../../gpu";
import { apply, areGradientsEnabled } from "../apply";
import { autocasting } from "../autocast";
import { grad } from "../autograd";
import { describeShape, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { add, mul, neg, rsqrt, sub } from "./elementwise";
import { type AffineOptions, checkInput, rowMoments, scaleRows } from "./normalization";
import { sum } from "./reduction";
import { rowPerInvocation, rowPerWorkgroup } from "./rowWalk";
import type { BufferValue, Lowering, Operator } from "./table";
import { contiguous, narrow, reshape, select } from "./views";

/*
 * Layer norm of a matrix's rows, each pass in one kernel, which takes a row at a time: an invocation on a software
 * adapter, a workgroup on a GPU. The backward pass takes the moments again, so that nothing but the input is kept.
 */

type NormAttributes = { readonly eps: number; readonly hasBias: boolean };

/** Longer rows are left to the kernels that cut them into parts, unless there are many. */
const longestRow = 4096;
const manyRows = 64;
const alignment = 64;
const aligned = (length: number) => Math.ceil(length / alignment) * alignment;

interface Variant {
  readonly inVectors: boolean;
  readonly isShared: boolean;
  readonly hasWeight: boolean;
  readonly hasBias: boolean;
}

function shaderOf(name: string, variant: Variant, reads: readonly string[], body: string): Shader {
  const { inVectors, hasWeight, hasBias } = variant;
  const bound = [...reads, ...(hasWeight ? ["weight"] : []), ...(hasBias ? ["bias"] : [])];
  const type = inVectors ? "vec4f" : "f32";
  const declared = bound.map((of, i) => `@group(0) @binding(${i + 1}) var<storage, read> ${of}: array<${type}>;`);
  const code = /* wgsl */ `
struct Uniforms { rows: u32, length: u32, count: f32, eps: f32, moments: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
${declared.join("\n")}
@group(0) @binding(${bound.length + 1}) var<storage, read_write> out: array<${type}>;
fn inner_sum(x: ${type}) -> f32 { return ${inVectors ? "(x.x + x.y) + (x.z + x.w)" : "x"}; }
fn factor(at: u32) -> ${type} { return ${hasWeight ? "weight[at]" : `${type}(1.0)`}; }
fn summand(at: u32) -> ${type} { return ${hasBias ? "bias[at]" : `${type}(0.0)`}; }
fn store_number(at: u32, x: f32) { ${inVectors ? "out[at >> 2u][at & 3u] = x;" : "out[at] = x;"} }
${(variant.isShared ? rowPerWorkgroup : rowPerInvocation)(
  /* wgsl */ `  let first = row * u.length;
  var total = ${type}();
  for (var at = lane; at < u.length; at += lanes) { total += input[first + at]; }
  let mean = all_sum(inner_sum(total), lane) / u.count;
  var squares = ${type}();
  for (var at = lane; at < u.length; at += lanes) {
    let deviation = input[first + at] - mean;
    squares = fma(deviation, deviation, squares);
  }
  let scale = 1.0 / sqrt(all_sum(inner_sum(squares), lane) / u.count + u.eps);
${body}`,
)}`;
  const name_ = `${name}${hasWeight ? " by weight" : ""}${hasBias ? " and bias" : ""}`;
  return { name: name_, code, bindings: [...bound.map(() => "read" as const), "write"] };
}

const forwardBody = /* wgsl */ `
  for (var at = lane; at < u.length; at += lanes) {
    out[first + at] = (input[first + at] - mean) * scale * factor(at) + summand(at);
  }`;

/** With h the gradient times the weight and y the normalized row: scale (h - mean(h) - y mean(h y)). */
const gradientBody = (type: string) => /* wgsl */ `
  var level = ${type}();
  var slope = ${type}();
  for (var at = lane; at < u.length; at += lanes) {
    let h = gradient[first + at] * factor(at);
    level += h;
    slope = fma(h, (input[first + at] - mean) * scale, slope);
  }
  let mean_level = all_sum(inner_sum(level), lane) / u.count;
  let mean_slope = all_sum(inner_sum(slope), lane) / u.count;
  for (var at = lane; at < u.length; at += lanes) {
    let h = gradient[first + at] * factor(at);
    out[first + at] = scale * (h - mean_level - (input[first + at] - mean) * scale * mean_slope);
  }
  if (lane == 0u) {
    store_number(u.moments + row, mean);
    store_number(u.moments + u.rows + row, scale);
  }`;

function family(of: (variant: Variant) => Shader): (variant: Variant) => Shader {
  const shaders = new Map<string, Shader>();
  return (variant) => {
    const key = Object.values(variant).join();
    const shader = shaders.get(key) ?? of(variant);
    shaders.set(key, shader);
    return shader;
  };
}

const forwardShader = family((variant) => shaderOf("layerNorm", variant, ["input"], forwardBody));
const gradientShader = family((variant) =>
  shaderOf("layerNormGradient", variant, ["input", "gradient"], gradientBody(variant.inVectors ? "vec4f" : "f32")),
);

function emit(
  lowering: Lowering,
  shader: (variant: Variant) => Shader,
  bindings: readonly BufferValue[],
  [rows = 0, length = 0]: Shape,
  { eps, ...flags }: { readonly eps: number; readonly hasWeight: boolean; readonly hasBias: boolean },
): void {
  const inVectors = length % 4 === 0;
  const isShared = !lowering.isSoftware;
  lowering.dispatch({
    shader: shader({ inVectors, isShared, ...flags }),
    bindings,
    uniforms: [rows, inVectors ? length / 4 : length, { f32: length }, { f32: eps }, aligned(rows * length)],
    grid: spread(isShared ? rows : Math.ceil(rows / 64)),
    work: rows * length * 12,
  });
}

/** Inputs: rows [R, L], and weight [L] and bias [L] if there are any. */
const layerNormRow: Operator<NormAttributes> = {
  name: "layerNorm",
  infer: ([input]) => ({ shape: input!.shape, dtype: "float32" }),
  lower(lowering, { inputs, attributes: { eps, hasBias }, shape }) {
    const out = lowering.result();
    const hasWeight = inputs.length === (hasBias ? 3 : 2);
    emit(lowering, forwardShader, [...inputs.map((value) => lowering.dense(value)), out], shape, {
      ...{ eps, hasWeight, hasBias },
    });
    return out;
  },
  backward({ inputs, gradient, attributes: { eps, hasBias }, needs }) {
    const [input, ...affine] = inputs;
    const weight = affine.length === (hasBias ? 2 : 1) ? affine[0]! : null;
    if (areGradientsEnabled()) {
      // To be differentiated again, they are the gradients of the composed operators.
      const aliases = inputs.map((one) => contiguous(one));
      const [x, ...rest] = aliases;
      const composed = composedLayerNorm(x!, weight && rest[0]!, hasBias ? rest.at(-1)! : null, eps);
      const wanted = aliases.filter((_, i) => needs[i]);
      const gradients = grad(composed, wanted, { gradOutputs: [gradient], createGraph: true });
      return aliases.map((_, i) => (needs[i] ? (gradients.shift() ?? null) : null));
    }
    const all = apply(gradientRow, [input!, gradient, ...(weight ? [weight] : [])], { eps });
    const [rows = 0] = input!.shape;
    const moment = (index: number) => reshape(narrow(all, 0, aligned(input!.numel) + index * rows, rows), [rows, 1]);
    const normalized = () => mul(sub(input!, moment(0)), moment(1));
    const last = inputs.length - 1;
    return inputs.map((_, i) => {
      if (!needs[i]) return null;
      if (i === 0) return reshape(narrow(all, 0, 0, input!.numel), input!.shape);
      return sum(hasBias && i === last ? gradient : mul(gradient, normalized()), 0);
    });
  },
};

/**
 * Inputs: rows [R, L], the gradient of the result, and the weight if there is one. Output: the rows' gradient, up to a
 * multiple of 64, and then the rows' means and the reciprocals of their deviations.
 */
const gradientRow: Operator<{ readonly eps: number }> = {
  name: "layerNormGradient",
  infer: ([input]) => ({ shape: [aligned(sizeOf(input!.shape)) + 2 * input!.shape[0]!], dtype: "float32" }),
  lower(lowering, { inputs, attributes: { eps } }) {
    const out = lowering.result();
    emit(lowering, gradientShader, [...inputs.map((value) => lowering.dense(value)), out], inputs[0]!.shape, {
      ...{ eps, hasWeight: inputs.length === 3, hasBias: false },
    });
    return out;
  },
};

export const layerNorms: readonly Operator[] = [layerNormRow, gradientRow];

/** Layer norm of rows, made of rowMoments and scaleRows. */
function composedLayerNorm(rows: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number): Tensor {
  const moments = rowMoments(rows);
  const factor = rsqrt(add(select(moments, 0, 1), eps));
  const normalized = scaleRows(rows, factor, neg(mul(select(moments, 0, 0), factor)));
  const scaled = weight ? mul(normalized, weight) : normalized;
  return bias ? add(scaled, bias) : scaled;
}

/**
 * torch.nn.functional.layer_norm: normalises over the last dimensions, whose sizes are `normalizedShape`.
 * @param input floats [..., *normalizedShape]; weight and bias [*normalizedShape].
 * @throws OperatorError for shapes that don't go together.
 */
export const layerNorm = autocasting(
  "layerNorm",
  (input: Tensor, normalizedShape: Shape, options: AffineOptions = {}): Tensor => {
    const operator = "layerNorm";
    const { eps = 1e-5, weight = null, bias = null } = options;
    checkInput(operator, input, 1);
    const lead = input.ndim - normalizedShape.length;
    for (const [what, shape] of Object.entries({
      input: lead >= 0 ? input.shape.slice(lead) : input.shape,
      weight: weight?.shape,
      bias: bias?.shape,
    }))
      if (shape && describeShape(shape) !== describeShape(normalizedShape))
        throw new OperatorError(
          operator,
          `the ${what} ends in ${describeShape(shape)}; expected ${describeShape(normalizedShape)}`,
        );
    const [count, length] = [sizeOf(input.shape.slice(0, lead)), sizeOf(normalizedShape)];
    const rows = reshape(input, [count, length]);
    const [factors, summands] = [weight, bias].map((of) => of && reshape(of, [length]));
    const isRowwise = rows.numel > 0 && (length <= longestRow || count >= manyRows);
    const result = isRowwise
      ? apply(layerNormRow, [rows, ...[factors, summands].flatMap((of) => of ?? [])], { eps, hasBias: bias !== null })
      : composedLayerNorm(rows, factors ?? null, summands ?? null, eps);
    return reshape(result, input.shape);
  },
);

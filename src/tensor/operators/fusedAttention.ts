import { type Shader, spread } from "../../gpu";
import { apply, areGradientsEnabled } from "../apply";
import { grad } from "../autograd";
import { type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { composedAttention } from "./attention";
import { type BufferValue, innerOffset, type LoweredNode, type Lowering, type Operator, type Uniform } from "./table";
import { contiguous, expand, narrow, reshape, select } from "./views";

/*
 * Attention without the matrix of scores (Dao et al. 2022): each query walks the keys once with a running maximum, and
 * keeps the logarithm of its sum; the backward pass computes the weights again from that. Memory grows linearly with the
 * length, and each sum has one order.
 */

export type AttentionAttributes = {
  /** Whether query i sees keys 0 to i only. */
  readonly isCausal: boolean;
  /** The factor of the scores. */
  readonly scale: number;
};

/** Larger heads would spill an invocation's registers. */
const mostFeatures = 128;
const alignment = 64;
const aligned = (length: number) => Math.ceil(length / alignment) * alignment;

const uniforms = /* wgsl */ `
struct Uniforms {
  count: u32,
  heads: u32,
  keyHeads: u32,
  queries: u32,
  keys: u32,
  scale: f32,
  isCausal: u32,
  // Where the logarithms of the sums begin in the results.
  sums: u32,
  hasMask: u32,
  maskOffset: u32,
  maskImage: u32,
  maskHead: u32,
  maskQuery: u32,
  maskKey: u32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;
`;

const bindings = (names: readonly (readonly [name: string, type: string])[]) =>
  [...names.slice(0, -1), names.at(-1)!]
    .map(
      ([name, type], i) =>
        `@group(0) @binding(${i + 1}) var<storage, ${i === names.length - 1 ? "read_write" : "read"}> ${name}: array<${type}>;`,
    )
    .join("\n");

const shared = (quads: number) => /* wgsl */ `
const QUADS = ${quads}u;
fn mask_at(image: u32, head: u32, query: u32, key: u32) -> f32 {
  if (u.hasMask == 0u) { return 0.0; }
  return mask[u.maskOffset + image * u.maskImage + head * u.maskHead + query * u.maskQuery + key * u.maskKey];
}
`;

const main = (body: string) => /* wgsl */ `
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
${body}
}`;

/** WGSL that finds a query's image, head, place and the first of its keys, from its row \`i\`. */
const ofQuery = /* wgsl */ `
  let place = i % u.queries;
  let head = i / u.queries % u.heads;
  let image = i / (u.queries * u.heads);
  let first = (image * u.keyHeads + head / (u.heads / u.keyHeads)) * u.keys;
  let seen = select(u.keys, min(u.keys, place + 1u), u.isCausal == 1u);
`;

const forwardCode = (quads: number) =>
  uniforms +
  bindings([
    ["query", "vec4f"],
    ["key", "vec4f"],
    ["value", "vec4f"],
    ["mask", "f32"],
    ["out", "f32"],
  ]) +
  shared(quads) +
  main(/* wgsl */ `
  ${ofQuery}
  var q: array<vec4f, QUADS>;
  var total: array<vec4f, QUADS>;
  for (var d = 0u; d < QUADS; d++) { q[d] = query[i * QUADS + d] * u.scale; }
  var top = -3.4e38;
  var sum = 0.0;
  for (var j = 0u; j < seen; j++) {
    let row = (first + j) * QUADS;
    var score = mask_at(image, head, place, j);
    for (var d = 0u; d < QUADS; d++) { score += dot(q[d], key[row + d]); }
    // A masked score of minus infinity weighs nothing.
    if (score < -3.0e38) { continue; }
    if (score > top) {
      let kept = exp(top - score);
      sum *= kept;
      for (var d = 0u; d < QUADS; d++) { total[d] *= kept; }
      top = score;
    }
    let weight = exp(score - top);
    sum += weight;
    for (var d = 0u; d < QUADS; d++) { total[d] += weight * value[row + d]; }
  }
  for (var d = 0u; d < QUADS; d++) {
    let result = total[d] / sum;
    for (var lane = 0u; lane < 4u; lane++) { out[(i * QUADS + d) * 4u + lane] = result[lane]; }
  }
  out[u.sums + i] = top + log(sum);`);

/** The gradient of the queries. */
const queryGradientCode = (quads: number) =>
  uniforms +
  bindings([
    ["query", "vec4f"],
    ["key", "vec4f"],
    ["value", "vec4f"],
    ["mask", "f32"],
    ["results", "f32"],
    ["gradient", "vec4f"],
    ["out", "vec4f"],
  ]) +
  shared(quads) +
  main(/* wgsl */ `
  ${ofQuery}
  var q: array<vec4f, QUADS>;
  var g: array<vec4f, QUADS>;
  var total: array<vec4f, QUADS>;
  var delta = 0.0;
  for (var d = 0u; d < QUADS; d++) {
    q[d] = query[i * QUADS + d] * u.scale;
    g[d] = gradient[i * QUADS + d];
    let at = (i * QUADS + d) * 4u;
    delta += dot(g[d], vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]));
  }
  let logSum = results[u.sums + i];
  for (var j = 0u; j < seen; j++) {
    let row = (first + j) * QUADS;
    var score = mask_at(image, head, place, j);
    var along = 0.0;
    for (var d = 0u; d < QUADS; d++) {
      score += dot(q[d], key[row + d]);
      along += dot(g[d], value[row + d]);
    }
    if (score < -3.0e38) { continue; }
    let slope = exp(score - logSum) * (along - delta) * u.scale;
    for (var d = 0u; d < QUADS; d++) { total[d] += slope * key[row + d]; }
  }
  for (var d = 0u; d < QUADS; d++) { out[i * QUADS + d] = total[d]; }`);

/** For each query, the product of its output and its output's gradient. */
const deltaCode = (quads: number) =>
  uniforms +
  bindings([
    ["results", "vec4f"],
    ["gradient", "vec4f"],
    ["out", "f32"],
  ]) +
  `\nconst QUADS = ${quads}u;\n` +
  main(/* wgsl */ `
  var delta = 0.0;
  for (var d = 0u; d < QUADS; d++) { delta += dot(results[i * QUADS + d], gradient[i * QUADS + d]); }
  out[i] = delta;`);

/** The gradients of the keys, then those of the values. */
const keyGradientCode = (quads: number) =>
  uniforms +
  bindings([
    ["query", "vec4f"],
    ["key", "vec4f"],
    ["value", "vec4f"],
    ["mask", "f32"],
    ["results", "f32"],
    ["gradient", "vec4f"],
    ["deltas", "f32"],
    ["out", "vec4f"],
  ]) +
  shared(quads) +
  main(/* wgsl */ `
  let place = i % u.keys;
  let keyHead = i / u.keys % u.keyHeads;
  let image = i / (u.keys * u.keyHeads);
  var k: array<vec4f, QUADS>;
  var v: array<vec4f, QUADS>;
  var ofKey: array<vec4f, QUADS>;
  var ofValue: array<vec4f, QUADS>;
  for (var d = 0u; d < QUADS; d++) {
    k[d] = key[i * QUADS + d] * u.scale;
    v[d] = value[i * QUADS + d];
  }
  let served = u.heads / u.keyHeads;
  for (var h = 0u; h < served; h++) {
    let head = keyHead * served + h;
    let first = (image * u.heads + head) * u.queries;
    for (var j = select(0u, place, u.isCausal == 1u); j < u.queries; j++) {
      let row = (first + j) * QUADS;
      var score = mask_at(image, head, j, place);
      var along = 0.0;
      for (var d = 0u; d < QUADS; d++) {
        score += dot(query[row + d], k[d]);
        along += dot(gradient[row + d], v[d]);
      }
      if (score < -3.0e38) { continue; }
      let weight = exp(score - results[u.sums + first + j]);
      let slope = weight * (along - deltas[first + j]) * u.scale;
      for (var d = 0u; d < QUADS; d++) {
        ofKey[d] += slope * query[row + d];
        ofValue[d] += weight * gradient[row + d];
      }
    }
  }
  for (var d = 0u; d < QUADS; d++) {
    out[i * QUADS + d] = ofKey[d];
    out[(u.count + i) * QUADS + d] = ofValue[d];
  }`);

/** A kernel for each number of features. */
function family(name: string, reads: number, code: (quads: number) => string): (features: number) => Shader {
  const shaders = new Map<number, Shader>();
  return (features) => {
    const known = shaders.get(features);
    if (known) return known;
    const access = [...new Array<"read">(reads).fill("read"), "write" as const];
    const shader: Shader = { name: `${name} of ${features}`, bindings: access, code: code(features / 4) };
    shaders.set(features, shader);
    return shader;
  };
}

const forwardShader = family("attention", 4, forwardCode);
const queryGradientShader = family("attentionQueryGradient", 6, queryGradientCode);
const deltaShader = family("attentionDelta", 2, deltaCode);
const keyGradientShader = family("attentionKeyGradient", 7, keyGradientCode);

type Node = LoweredNode<AttentionAttributes>;

/** The operands that all kernels share, and their uniforms for `count` invocations. */
function operandsOf(lowering: Lowering, { inputs: [query, key, value, mask], attributes }: Node) {
  const [images = 0, heads = 0, queries = 0, features = 0] = query!.shape;
  const [, keyHeads = 0, keys = 0] = key!.shape;
  const dense = [query!, key!, value!].map((operand) => lowering.dense(operand));
  const maskBuffer = mask ? lowering.buffer(mask) : null;
  const rows = images * heads * queries;
  const maskWords = maskBuffer ? [1, innerOffset(maskBuffer), ...maskBuffer.strides] : new Array<number>(6).fill(0);
  const words = (count: number): Uniform[] => [
    ...[count, heads, keyHeads, queries, keys, { f32: attributes.scale }, attributes.isCausal ? 1 : 0],
    ...[aligned(rows * features), ...maskWords],
  ];
  const operands: BufferValue[] = [...dense, maskBuffer ?? dense[0]!];
  return { operands, words, rows, features, keys, keyRows: images * keyHeads * keys };
}

const resultLength = ([images = 0, heads = 0, queries = 0, features = 0]: Shape) => {
  const rows = images * heads * queries;
  return aligned(rows * features) + rows;
};

/**
 * Inputs: query [N, H, L, E], key and value [N, G, S, E], and optionally what is added to the scores [N, H, L, S]. Output:
 * the N H L E results, up to a multiple of 64, and then each query's logarithm of its sum.
 */
const attentionRow: Operator<AttentionAttributes> = {
  name: "attention",
  infer: ([query]) => ({ shape: [resultLength(query!.shape)], dtype: "float32" }),
  lower(lowering, node) {
    const out = lowering.result();
    const { operands, words, rows, features, keys } = operandsOf(lowering, node);
    lowering.dispatch({
      shader: forwardShader(features),
      bindings: [...operands, out],
      uniforms: words(rows),
      grid: spread(Math.ceil(rows / 64)),
      work: rows * keys * (4 * features + 20),
    });
    return out;
  },
  backward({ inputs: [query, key, value, ...mask], output, gradient, attributes, needs }) {
    const length = query!.numel;
    const ofResult = reshape(narrow(gradient, 0, 0, length), query!.shape);
    if (areGradientsEnabled()) {
      // To be differentiated again, they are the gradients of the composed operators.
      // Aliases, since query, key and value may be one tensor.
      const [q, k, v] = [contiguous(query!), contiguous(key!), contiguous(value!)];
      const inputs = [q, k, v];
      const composed = composedAttention(q, k, v, mask[0] ?? null, attributes).output;
      const gradients = grad(
        composed,
        inputs.filter((_, i) => needs[i]),
        { gradOutputs: [ofResult], createGraph: true },
      );
      return [...inputs.map((_, i) => (needs[i] ? (gradients.shift() ?? null) : null)), ...mask.map(() => null)];
    }
    const operands = [query!, key!, value!, ...mask, output, ofResult];
    const both = needs[1] || needs[2] ? apply(keyGradientRow, operands, attributes) : null;
    return [
      needs[0] ? apply(queryGradientRow, operands, attributes) : null,
      both && select(both, 0, 0),
      both && select(both, 0, 1),
      ...mask.map(() => null),
    ];
  },
};

/** The forward pass's operands without what follows them: results and gradient. */
const forwardNode = (node: Node): Node => ({ ...node, inputs: node.inputs.slice(0, -2) });

/** Inputs: those of `attention`, its output, and the gradient of the results [N, H, L, E]. */
const queryGradientRow: Operator<AttentionAttributes> = {
  name: "attentionQueryGradient",
  infer: ([query]) => query!,
  lower(lowering, node) {
    const out = lowering.result();
    const { operands, words, rows, features, keys } = operandsOf(lowering, forwardNode(node));
    const [results, gradient] = node.inputs.slice(-2).map((input) => lowering.dense(input));
    lowering.dispatch({
      shader: queryGradientShader(features),
      bindings: [...operands, results!, gradient!, out],
      uniforms: words(rows),
      grid: spread(Math.ceil(rows / 64)),
      work: rows * keys * (6 * features + 20),
    });
    return out;
  },
};

/** Inputs as above; output [2, N, G, S, E]: the gradients of keys and values. */
const keyGradientRow: Operator<AttentionAttributes> = {
  name: "attentionKeyGradient",
  infer: ([, key]) => ({ shape: [2, ...key!.shape], dtype: "float32" }),
  lower(lowering, node) {
    const out = lowering.result();
    const { operands, words, rows, features, keys, keyRows } = operandsOf(lowering, forwardNode(node));
    const [results, gradient] = node.inputs.slice(-2).map((input) => lowering.dense(input));
    const deltas = lowering.allocate([rows], "float32");
    lowering.dispatch({
      shader: deltaShader(features),
      bindings: [results!, gradient!, deltas],
      uniforms: words(rows),
      grid: spread(Math.ceil(rows / 64)),
      work: 3 * rows * features,
    });
    lowering.dispatch({
      shader: keyGradientShader(features),
      bindings: [...operands, results!, gradient!, deltas, out],
      uniforms: words(keyRows),
      grid: spread(Math.ceil(keyRows / 64)),
      work: rows * keys * (8 * features + 20),
    });
    return out;
  },
};

export const fusedAttentions: readonly Operator[] = [attentionRow, queryGradientRow, keyGradientRow];

/**
 * From so many scores on (4 MiB of them) the fused kernels pay: they save memory, but below it products in tiles are
 * two to three times as fast on a software adapter.
 */
const fewestScores = 2 ** 20;

/** Whether the matrix of scores is so large that it isn't to be held. */
export const isLarge = (query: Tensor, key: Tensor): boolean =>
  (query.numel / Math.max(1, query.size(-1))) * key.size(-2) >= fewestScores;

/** Whether the fused kernels serve this: equal features in multiples of 4, and a mask that needs no gradient. */
export function canFuse(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null): boolean {
  const features = query.size(-1);
  const isPlain = features % 4 === 0 && features <= mostFeatures && value.size(-1) === features;
  const lead = (of: Tensor) => of.shape.slice(0, -3).join();
  const isBatched = query.ndim === 4 && lead(query) === lead(key) && lead(query) === lead(value);
  const hasValues = query.numel > 0 && key.numel > 0;
  const groups = query.size(-3) / key.size(-3);
  return isPlain && isBatched && hasValues && Number.isInteger(groups) && !mask?.requiresGrad;
}

/** Attention of [N, H, L, E] by the fused kernels; the mask broadcasts to [N, H, L, S]. */
export function fusedAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  attributes: AttentionAttributes,
): Tensor {
  const scores = [...query.shape.slice(0, -1), key.size(-2)];
  const inputs = mask ? [query, key, value, expand(mask, scores)] : [query, key, value];
  return reshape(narrow(apply(attentionRow, inputs, attributes), 0, 0, sizeOf(query.shape)), query.shape);
}

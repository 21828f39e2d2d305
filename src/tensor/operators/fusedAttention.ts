import { type Shader, spread } from "../../gpu";
import { apply, areGradientsEnabled } from "../apply";
import { grad } from "../autograd";
import { type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { composedAttention } from "./attention";
import {
  type AttentionTile,
  attentionKeyGradientShader,
  attentionPlaces,
  attentionQueryGradientShader,
  attentionShader,
  type PlaceName,
} from "./attentionShader";
import { to } from "./elementwise";
import { type BufferValue, innerOffset, type Lowering, type Operator, type Uniform, type Value } from "./table";
import { contiguous, expand, narrow, reshape, select, transpose } from "./views";

/*
 * Attention without the matrix of scores: memory grows linearly with the length. Queries, keys and values may be views,
 * such as the parts of one projection; or they come packed in one tensor, whose gradient is then written in one piece.
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

/** Where a tensor of [images, heads, places, features] lies: its first element, and the steps of the first three. */
interface Place {
  readonly offset: number;
  readonly strides: readonly [image: number, head: number, place: number];
}

/** [N, H, L, E] in one piece. */
const planar = ([, heads = 0, length = 0, features = 0]: Shape, offset = 0): Place => ({
  offset,
  strides: [heads * length * features, length * features, features],
});

/** [N, L, parts, H, E] in one piece, one of its parts. */
const interleaved = ([, heads = 0, length = 0, features = 0]: Shape, parts: number, part: number): Place => ({
  offset: part * heads * features,
  strides: [length * parts * heads * features, features, parts * heads * features],
});

/** A value as the kernels walk it, by vectors of features; a copy where it can't be. */
function walked(lowering: Lowering, value: Value): { readonly buffer: BufferValue; readonly place: Place } {
  const buffer = lowering.buffer(value);
  const [image = 0, head = 0, place = 0, feature = 0] = buffer.strides;
  const offset = innerOffset(buffer);
  const inVectors = feature === 1 && [offset, image, head, place].every((step) => step % 4 === 0);
  if (!inVectors) return { buffer: lowering.dense(value), place: planar(value.shape) };
  return { buffer, place: { offset, strides: [image, head, place] } };
}

/** What all kernels of a call take: shapes are [N, H, L, E] for the query and [N, G, S, E] for key and value. */
interface Call {
  readonly attributes: AttentionAttributes;
  readonly queryShape: Shape;
  readonly keyShape: Shape;
  readonly query: { readonly buffer: BufferValue; readonly place: Place };
  readonly key: { readonly buffer: BufferValue; readonly place: Place };
  readonly value: { readonly buffer: BufferValue; readonly place: Place };
  readonly mask: BufferValue | null;
  /** Where the results lie in what the forward pass writes. */
  readonly results: Place;
}

const wordsOf = ({ offset, strides }: Place): number[] => [offset, ...strides].map((step) => step / 4);

/** The uniforms of a kernel whose invocations take `rows` of `length` places of `heads` heads. */
function uniformsOf(call: Call, places: Partial<Record<PlaceName, Place>>, tiles: number, count: number): Uniform[] {
  const { attributes, queryShape, keyShape, mask } = call;
  const known: Partial<Record<PlaceName, Place>> = {
    ...{ q: call.query.place, k: call.key.place, v: call.value.place, o: call.results },
    ...places,
  };
  const [, heads = 0, queries = 0] = queryShape;
  const [, keyHeads = 0, keys = 0] = keyShape;
  const nowhere = [0, 0, 0, 0];
  return [
    ...attentionPlaces.flatMap((name) => (known[name] ? wordsOf(known[name]) : nowhere)),
    ...[count, tiles, heads, keyHeads, queries, keys, { f32: attributes.scale }, attributes.isCausal ? 1 : 0],
    ...[
      aligned(sizeOf(queryShape)),
      sizeOf(queryShape.slice(0, 3)),
      ...(mask ? [innerOffset(mask), ...mask.strides] : [0, ...nowhere]),
    ],
  ];
}

/**
 * Rows that an invocation takes: more read less memory for each product. On a software adapter four are fastest but take
 * seconds to compile, which pays where there are many pairs of query and key; a GPU wants many invocations.
 */
function rowsOfTile(isSoftware: boolean, pairs: number, vectorsOfRow: number): number {
  if (!isSoftware) return 1;
  const most = pairs >= 2 ** 20 ? 4 : 2;
  return Math.max(1, Math.min(most, Math.floor(mostVectors / vectorsOfRow)));
}

/** Vectors of 4 that an invocation holds of all its rows. */
const mostVectors = 128;

function dispatchTiles(
  lowering: Lowering,
  call: Call,
  of: {
    readonly shader: (tile: AttentionTile) => Shader;
    /** Values of each row that are held. */
    readonly held: number;
    readonly shape: Shape;
    readonly bindings: readonly BufferValue[];
    readonly places: Partial<Record<PlaceName, Place>>;
    /** Operations for each feature of each pair of query and key. */
    readonly operations: number;
  },
): void {
  const [images = 0, heads = 0, length = 0, features = 0] = of.shape;
  const quads = features / 4;
  const [queryImages = 0, queryHeads = 0, queries = 0] = call.queryShape;
  const pairs = queryImages * queryHeads * queries * (call.keyShape[2] ?? 0);
  const rows = rowsOfTile(lowering.isSoftware, pairs, of.held * quads);
  const tiles = Math.ceil(length / rows);
  const count = images * heads * tiles;
  const { query, key, value, mask } = call;
  lowering.dispatch({
    shader: of.shader({ quads, rows, isMasked: mask !== null }),
    bindings: [query.buffer, key.buffer, value.buffer, mask ?? query.buffer, ...of.bindings],
    uniforms: uniformsOf(call, of.places, tiles, count),
    grid: spread(Math.ceil(count / 64)),
    work: pairs * (of.operations * features + 20),
  });
}

function emitForward(lowering: Lowering, call: Call, out: BufferValue): void {
  const shape = call.queryShape;
  dispatchTiles(lowering, call, {
    ...{ shader: attentionShader, held: 2, shape, bindings: [out], places: {}, operations: 4 },
  });
}

/** The gradients' places are where they lie in `out`. */
function emitGradients(
  lowering: Lowering,
  call: Call,
  results: Value,
  gradient: Value,
  out: BufferValue,
  places: { readonly dq: Place; readonly dk: Place; readonly dv: Place },
): void {
  const { buffer, place } = walked(lowering, gradient);
  const { queryShape, keyShape } = call;
  const kept = lowering.allocate([...queryShape.slice(0, 3), 2], "float32");
  dispatchTiles(lowering, call, {
    ...{ shader: attentionQueryGradientShader, held: 3, shape: queryShape, operations: 6 },
    bindings: [lowering.dense(results), buffer, kept, out],
    places: { g: place, ...places },
  });
  dispatchTiles(lowering, call, {
    ...{ shader: attentionKeyGradientShader, held: 4, shape: keyShape, operations: 8 },
    bindings: [buffer, kept, out],
    places: { g: place, ...places },
  });
}

const float32 = (shape: Shape) => ({ shape, dtype: "float32" as const });

/** Elements of the forward pass's results: those of the query, up to a multiple of 64, and each query's logarithm twice. */
const resultLength = (query: Shape) => aligned(sizeOf(query)) + 2 * sizeOf(query.slice(0, 3));

/** A call on separate tensors. */
function callOf(
  lowering: Lowering,
  [query, key, value, mask]: readonly Value[],
  attributes: AttentionAttributes,
): Call {
  const [q, k, v] = [query!, key!, value!].map((operand) => walked(lowering, operand));
  return {
    ...{ attributes, queryShape: query!.shape, keyShape: key!.shape, query: q!, key: k!, value: v! },
    mask: mask ? lowering.buffer(mask) : null,
    results: planar(query!.shape),
  };
}

/** The gradients of `composed(inputs)` by autograd, to be differentiated again. */
function composedGradients(
  inputs: readonly Tensor[],
  needs: readonly boolean[],
  gradient: Tensor,
  composed: (inputs: readonly Tensor[]) => Tensor,
): (Tensor | null)[] {
  // Aliases, since query, key and value may be one tensor.
  const aliases = inputs.map((input) => contiguous(input));
  const wanted = aliases.filter((_, i) => needs[i]);
  const gradients = grad(composed(aliases), wanted, { gradOutputs: [gradient], createGraph: true });
  return aliases.map((_, i) => (needs[i] ? (gradients.shift() ?? null) : null));
}

/**
 * Inputs: query [N, H, L, E], key and value [N, G, S, E], and optionally what is added to the scores [N, H, L, S]. Output:
 * the N H L E results, up to a multiple of 64, and then each query's logarithm of its sum: first the bits that a narrow
 * float holds, then the rest of all.
 */
const attentionRow: Operator<AttentionAttributes> = {
  name: "attention",
  takesNarrow: true,
  infer: ([query]) => ({ shape: [resultLength(query!.shape)], dtype: query!.dtype }),
  lower(lowering, { inputs, attributes }) {
    const out = lowering.result();
    emitForward(lowering, callOf(lowering, inputs, attributes), out);
    return out;
  },
  backward({ inputs: [query, key, value, ...mask], output, gradient, attributes, needs }) {
    const ofResult = reshape(narrow(gradient, 0, 0, query!.numel), query!.shape);
    const none = mask.map(() => null);
    const inputs = [query!, key!, value!];
    if (areGradientsEnabled())
      return [
        ...composedGradients(
          inputs,
          needs,
          ofResult,
          ([q, k, v]) => composedAttention(q!, k!, v!, mask[0] ?? null, attributes).output,
        ),
        ...none,
      ];
    const all = apply(gradientRow, [...inputs, ...mask, output, ofResult], attributes);
    const sections = sectionsOf(query!.shape, key!.shape);
    return [
      ...inputs.map(({ shape, numel, dtype }, i) =>
        needs[i] ? to(reshape(narrow(all, 0, sections.offsets[i]!, numel), shape), dtype) : null,
      ),
      ...none,
    ];
  },
};

/** Where the gradients of query, key and value begin in the result of `attentionGradient`. */
function sectionsOf(query: Shape, key: Shape) {
  const [ofQuery, ofKey] = [aligned(sizeOf(query)), aligned(sizeOf(key))];
  return { offsets: [0, ofQuery, ofQuery + ofKey], length: ofQuery + 2 * ofKey };
}

/** Inputs: those of `attention`, its output, and the gradient of the results [N, H, L, E]. Output: the gradients. */
const gradientRow: Operator<AttentionAttributes> = {
  name: "attentionGradient",
  takesNarrow: true,
  infer: ([query, key]) => float32([sectionsOf(query!.shape, key!.shape).length]),
  lower(lowering, { inputs, attributes }) {
    const out = lowering.result();
    const call = callOf(lowering, inputs.slice(0, -2), attributes);
    const { offsets } = sectionsOf(call.queryShape, call.keyShape);
    const [results, gradient] = inputs.slice(-2);
    emitGradients(lowering, call, results!, gradient!, out, {
      dq: planar(call.queryShape, offsets[0]),
      dk: planar(call.keyShape, offsets[1]),
      dv: planar(call.keyShape, offsets[2]),
    });
    return out;
  },
};

const parts = [0, 1, 2] as const;

/** [N, H, L, E] of [N, L, 3, H, E]. */
const partShape = ([images = 0, length = 0, , heads = 0, features = 0]: Shape): Shape => [
  ...[images, heads, length, features],
];

function packedCall(lowering: Lowering, packed: Value, attributes: AttentionAttributes): Call {
  const buffer = lowering.dense(packed);
  const shape = partShape(packed.shape);
  const [query, key, value] = parts.map((part) => {
    const { offset, strides } = interleaved(shape, 3, part);
    return { buffer, place: { offset: innerOffset(buffer) + offset, strides } };
  });
  return {
    ...{ attributes, queryShape: shape, keyShape: shape, query: query!, key: key!, value: value!, mask: null },
    results: interleaved(shape, 1, 0),
  };
}

/** Input: [N, L, 3, H, E]. Output: the results [N, L, H, E], up to a multiple of 64, and each query's logarithm, as in `attention`. */
const packedRow: Operator<AttentionAttributes> = {
  name: "packedAttention",
  takesNarrow: true,
  infer: ([packed]) => ({ shape: [resultLength(partShape(packed!.shape))], dtype: packed!.dtype }),
  lower(lowering, { inputs: [packed], attributes }) {
    const out = lowering.result();
    emitForward(lowering, packedCall(lowering, packed!, attributes), out);
    return out;
  },
  backward({ inputs: [packed], output, gradient, attributes, needs }) {
    const [images = 0, heads = 0, length = 0, features = 0] = partShape(packed!.shape);
    const ofResult = reshape(narrow(gradient, 0, 0, packed!.numel / 3), [images, length, heads, features]);
    if (areGradientsEnabled())
      return composedGradients([packed!], needs, ofResult, ([of]) => composedPacked(of!, attributes));
    return [to(apply(packedGradientRow, [packed!, output, ofResult], attributes), packed!.dtype)];
  },
};

/** Inputs: the packed tensor, the forward pass's output, and the gradient of the results [N, L, H, E]. */
const packedGradientRow: Operator<AttentionAttributes> = {
  name: "packedAttentionGradient",
  takesNarrow: true,
  infer: ([packed]) => float32(packed!.shape),
  lower(lowering, { inputs: [packed, results, gradient], attributes }) {
    const out = lowering.result();
    const call = packedCall(lowering, packed!, attributes);
    const dense = lowering.dense(gradient!);
    const [, heads = 0, length = 0, features = 0] = call.queryShape;
    const row = heads * features;
    const byHeads = { ...dense, shape: call.queryShape, strides: [length * row, features, row, 1] };
    const [dq, dk, dv] = parts.map((part) => interleaved(call.queryShape, 3, part));
    emitGradients(lowering, call, results!, byHeads, out, { dq: dq!, dk: dk!, dv: dv! });
    return out;
  },
};

export const fusedAttentions: readonly Operator[] = [attentionRow, gradientRow, packedRow, packedGradientRow];

/** Self-attention of [N, L, 3, H, E] made of products and a softmax. Returns [N, L, H, E]. */
export function composedPacked(packed: Tensor, attributes: AttentionAttributes): Tensor {
  const [query, key, value] = parts.map((part) => transpose(select(packed, 2, part), 1, 2));
  return transpose(composedAttention(query!, key!, value!, null, attributes).output, 1, 2);
}

/** Self-attention of [N, L, 3, H, E] by the fused kernels. Returns [N, L, H, E]. */
export function packedAttention(packed: Tensor, attributes: AttentionAttributes): Tensor {
  const [images = 0, length = 0, , heads = 0, features = 0] = packed.shape;
  const results = narrow(apply(packedRow, [packed], attributes), 0, 0, packed.numel / 3);
  return reshape(results, [images, length, heads, features]);
}

/** Whether the fused kernels serve heads of so many features. */
const servesFeatures = (features: number): boolean => features % 4 === 0 && features <= mostFeatures && features > 0;

/** Whether the fused kernels serve this: equal features in multiples of 4, and a mask that needs no gradient. */
export function canFuse(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null): boolean {
  const features = query.size(-1);
  const isPlain = servesFeatures(features) && value.size(-1) === features;
  const lead = (of: Tensor) => of.shape.slice(0, -3).join();
  const isBatched = query.ndim === 4 && lead(query) === lead(key) && lead(query) === lead(value);
  const hasValues = query.numel > 0 && key.numel > 0;
  const groups = query.size(-3) / key.size(-3);
  const hasOneType = query.dtype === key.dtype && query.dtype === value.dtype;
  return isPlain && isBatched && hasValues && hasOneType && Number.isInteger(groups) && !mask?.requiresGrad;
}

/** Whether the fused kernels serve [N, L, 3, H, E]. */
export const canFusePacked = (packed: Tensor): boolean => packed.numel > 0 && servesFeatures(packed.size(-1));

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
  const results = narrow(apply(attentionRow, inputs, attributes), 0, 0, query.numel);
  return reshape(results, query.shape);
}

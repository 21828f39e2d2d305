import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { type ComputeType, wgslType } from "../dtype";
import { broadcastShapes, describeShape, normalizeDim, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { full } from "./creation";
import { mul, type Operand, to } from "./elementwise";
import { asTensor } from "./promotion";
import { emitSort } from "./sortKernel";
import { type BufferValue, innerOffset, type Lowering, type Operator } from "./table";
import { cat, expand, narrow, reshape } from "./views";

// The rows work on three dimensions, [outer, length, inner], of which the middle one is indexed. An index out of range
// gathers NaN (0 among integers) and scatters nowhere.

const byType = (make: (type: string, dtype: ComputeType) => Shader): Record<ComputeType, Shader> => ({
  float32: make(wgslType.float32, "float32"),
  int32: make(wgslType.int32, "int32"),
  bool: make(wgslType.bool, "bool"),
});

const gatherShaders = byType((type, dtype) => ({
  name: "gather",
  bindings: ["read", "read", "write"],
  code: /* wgsl */ `
struct Uniforms {
  count: u32,
  entries: u32,
  inner: u32,
  length: u32,
  value_offset: u32,
  value_outer: u32,
  value_middle: u32,
  value_inner: u32,
  index_offset: u32,
  index_outer: u32,
  index_middle: u32,
  index_inner: u32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> values: array<${type}>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> out: array<${type}>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  let c = i % u.inner;
  let m = i / u.inner % u.entries;
  let o = i / (u.inner * u.entries);
  let at = u32(indices[u.index_offset + o * u.index_outer + m * u.index_middle + c * u.index_inner]);
  if (at >= u.length) {
    out[i] = ${dtype === "float32" ? "bitcast<f32>(0x7fc00000u | (at & 1u))" : `${type}(0)`};
    return;
  }
  out[i] = values[u.value_offset + o * u.value_outer + at * u.value_middle + c * u.value_inner];
}`,
}));

/** A value's offset and three strides. */
const walkOf = (value: BufferValue): number[] => [innerOffset(value), ...value.strides];

/** Inputs: values [O, N, I], index [O, M, I]. Gives [O, M, I]. */
const gatherRow: Operator = {
  name: "gather",
  infer: ([values, index]) => ({ shape: index!.shape, dtype: values!.dtype }),
  lower(lowering, { inputs, shape, dtype }) {
    const [values, index] = inputs.map((input) => lowering.buffer(input)) as [BufferValue, BufferValue];
    const out = lowering.result();
    const count = sizeOf(shape);
    lowering.dispatch({
      shader: gatherShaders[dtype],
      bindings: [values, index, out],
      uniforms: [count, shape[1]!, shape[2]!, values.shape[1]!, ...walkOf(values), ...walkOf(index)],
      grid: spread(Math.ceil(count / 64)),
      work: count * 8,
    });
    return out;
  },
  backward: ({ inputs: [values, index], gradient }) => [
    apply(scatterAddRow, [full(values!.shape, 0), index!, gradient], {}),
    null,
  ],
};

/** How many entries an invocation looks through for those that go to its element; more are sorted first. */
const searchedEntries = 64;

interface Scattering {
  readonly name: string;
  /** WGSL statements that take in an entry's value `x`, and that end with the result in `total`. */
  readonly start: string;
  readonly step: string;
  readonly finish: string;
}

// Entries come in the order of the index, whichever kernel runs, so that the bits are the same.
const adding: Scattering = {
  name: "scatterAdd",
  start: "var part = TYPE(0); var pending = 0u;",
  step: "part += x; pending++; if (pending == 32u) { total += part; part = TYPE(0); pending = 0u; }",
  finish: "total += part;",
};
const replacing: Scattering = { name: "scatter", start: "", step: "total = x;", finish: "" };

const scatterUniforms = /* wgsl */ `
struct Uniforms {
  count: u32,
  length: u32,
  inner: u32,
  entries: u32,
  source_offset: u32,
  source_outer: u32,
  source_middle: u32,
  source_inner: u32,
  index_offset: u32,
  index_outer: u32,
  index_middle: u32,
  index_inner: u32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;
`;

const scatterShader = (scattering: Scattering, isSorted: boolean) =>
  byType((type) => {
    const [start, step, finish] = [scattering.start, scattering.step, scattering.finish].map((code) =>
      code.replaceAll("TYPE", type),
    );
    const take = `let x = source[u.source_offset + o * u.source_outer + m * u.source_middle + c * u.source_inner];
      ${step}`;
    const search = /* wgsl */ `
  for (var m = 0u; m < u.entries; m++) {
    if (indices[u.index_offset + o * u.index_outer + m * u.index_middle + c * u.index_inner] == at) {
      ${take}
    }
  }`;
    const walk = /* wgsl */ `
  let lane = (o * u.index_outer + c * u.index_inner) * u.entries;
  var low = lane;
  var high = lane + u.entries;
  let end = high;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (keys[middle] < at) { low = middle + 1u; } else { high = middle; }
  }
  for (; low < end && keys[low] == at; low++) {
      let m = order[low];
      ${take}
  }`;
    const reads = isSorted
      ? ["keys: array<u32>", "order: array<u32>", `source: array<${type}>`, `target_values: array<${type}>`]
      : ["indices: array<i32>", `source: array<${type}>`, `target_values: array<${type}>`];
    return {
      name: `${scattering.name}${isSorted ? " of sorted entries" : ""}`,
      bindings: [...reads.map(() => "read" as const), "write"],
      code: /* wgsl */ `${scatterUniforms}
${reads.map((of, i) => `@group(0) @binding(${i + 1}) var<storage, read> ${of};`).join("\n")}
@group(0) @binding(${reads.length + 1}) var<storage, read_write> out: array<${type}>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  let c = i % u.inner;
  let at = ${isSorted ? "(i / u.inner % u.length) ^ 0x80000000u" : "i32(i / u.inner % u.length)"};
  let o = i / (u.inner * u.length);
  var total = target_values[i];
  ${start}
  ${isSorted ? walk : search}
  ${finish}
  out[i] = total;
}`,
    };
  });

function scatterRow(scattering: Scattering, backward: NonNullable<Operator["backward"]>): Operator {
  const searching = scatterShader(scattering, false);
  const walking = scatterShader(scattering, true);
  return {
    name: scattering.name,
    infer: ([target]) => target!,
    lower(lowering, node) {
      const [, , source] = node.inputs;
      const target = lowering.dense(lowering.buffer(node.inputs[0]!));
      const index = lowering.buffer(node.inputs[1]!);
      const values = lowering.buffer(source!);
      const out = lowering.result();
      const [, length, inner] = node.shape as [number, number, number];
      const entries = index.shape[1]!;
      const count = sizeOf(node.shape);
      const head = [count, length, inner, entries, ...walkOf(values)];
      const grid = spread(Math.ceil(count / 64));
      if (entries <= searchedEntries) {
        lowering.dispatch({
          shader: searching[node.dtype],
          bindings: [index, values, target, out],
          uniforms: [...head, ...walkOf(index)],
          grid,
          work: count * (4 + 2 * entries),
        });
        return out;
      }
      const { keys, order, outer, within } = sortedLanes(lowering, index);
      lowering.dispatch({
        shader: walking[node.dtype],
        bindings: [keys, order, values, target, out],
        uniforms: [...head, 0, outer, 1, within],
        grid,
        work: count * (4 + 4 * Math.log2(entries)) + sizeOf(index.shape) * 4,
      });
      return out;
    },
    backward,
  };
}

/**
 * The entries of an index [O, M, I] sorted along M, by lanes: one for each outer and inner position, or for all of them
 * where the index is the same in all. `outer` and `within` step from lane to lane.
 */
function sortedLanes(lowering: Lowering, index: BufferValue) {
  const [outer, entries, inner] = index.shape as [number, number, number];
  const [stepOuter, stepMiddle, stepInner] = index.strides as [number, number, number];
  const lanesOuter = stepOuter === 0 ? 1 : outer;
  const lanesInner = stepInner === 0 ? 1 : inner;
  const lanes = lanesOuter * lanesInner;
  const byLane = lowering.dense({
    ...index,
    shape: [lanesOuter, lanesInner, entries],
    strides: [stepOuter, stepInner, stepMiddle],
  });
  const order = lowering.allocate([lanes, entries], "int32");
  const rows = { ...byLane, shape: [lanes, entries], strides: [entries, 1] };
  const keys = emitSort(lowering, rows, false, order);
  return { keys, order, outer: lanesOuter === 1 ? 0 : lanesInner, within: lanesInner === 1 ? 0 : 1 };
}

/** Inputs: target [O, N, I], index [O, M, I], source [O, M, I]. Gives the target with the source added at the index. */
const scatterAddRow = scatterRow(adding, ({ inputs: [, index], gradient, needs }) => [
  gradient,
  null,
  needs[2] ? apply(gatherRow, [gradient, index!], {}) : null,
]);
/** Inputs as scatterAdd's. Of entries that go to one place, the last stays. */
const scatterReplaceRow = scatterRow(replacing, ({ inputs: [, index], gradient, needs }) => [
  needs[0] ? apply(scatterReplaceRow, [gradient, index!, full(index!.shape, 0)], {}) : null,
  null,
  needs[2] ? apply(gatherRow, [gradient, index!], {}) : null,
]);

export const indexing: readonly Operator[] = [gatherRow, scatterAddRow, scatterReplaceRow];

/** The sizes before, at and behind a dimension. A scalar is a vector of one. */
function threeSizes({ shape }: Tensor, dim: number): [number, number, number] {
  return shape.length === 0 ? [1, 1, 1] : [sizeOf(shape.slice(0, dim)), shape[dim]!, sizeOf(shape.slice(dim + 1))];
}

const byThree = (tensor: Tensor, dim: number): Tensor => reshape(tensor, threeSizes(tensor, dim));

function checkIndex(operator: string, index: Tensor): void {
  if (index.dtype !== "int32") throw new OperatorError(operator, `the index is ${index}; expected int32`);
}

/** Checks an index that has the input's dimensions, of which those but `dim` may be smaller. */
function checkAlong(operator: string, input: Tensor, dim: number, index: Tensor): void {
  checkIndex(operator, index);
  const [rank, indexRank] = [Math.max(1, input.ndim), Math.max(1, index.ndim)];
  if (
    indexRank !== rank ||
    (index.numel > 0 && index.ndim > 0 && index.shape.some((size, d) => d !== dim && size > input.shape[d]!))
  )
    throw new OperatorError(
      operator,
      `the index has shape ${describeShape(index.shape)} and the input ${describeShape(input.shape)}; ` +
        `expected as many dimensions, and sizes no larger but in dimension ${dim}`,
    );
}

/** The part of a tensor that an index of `shape` refers to. */
function partFor(tensor: Tensor, shape: Shape, dim: number | null): Tensor {
  if (tensor.ndim === 0) return tensor;
  return shape.reduce((part, size, d) => (d === dim ? part : narrow(part, d, 0, size)), tensor);
}

/**
 * Elements picked along `dim`: out[i][j] = input[index[i][j]][j] for a matrix and dim 0. The result has the index's
 * shape, whose other sizes may be smaller than the input's.
 */
export function gather(input: Tensor, dim: number, index: Tensor): Tensor {
  const d = normalizeDim("gather", dim, input.ndim);
  checkAlong("gather", input, d, index);
  if (index.numel === 0) return reshape(narrow(reshape(input, [input.numel]), 0, 0, 0), index.shape);
  const picked = apply(gatherRow, [byThree(partFor(input, index.shape, d), d), byThree(index, d)], {});
  return reshape(picked, index.shape);
}

/** Adds to the input at the index, gather's transpose: out[index[i][j]][j] += source[i][j] for dim 0. */
export const scatterAdd = (input: Tensor, dim: number, index: Tensor, source: Tensor): Tensor =>
  scatterInto(scatterAddRow, input, dim, index, source);

/** Puts values into the input at the index; of several for one place, the last stays. */
export const scatter = (input: Tensor, dim: number, index: Tensor, source: Operand): Tensor =>
  scatterInto(scatterReplaceRow, input, dim, index, source);

function scatterInto(row: Operator, input: Tensor, dim: number, index: Tensor, source: Operand): Tensor {
  const d = normalizeDim(row.name, dim, input.ndim);
  checkAlong(row.name, input, d, index);
  if (index.numel === 0) return input;
  const values = asTensor(source, input.dtype);
  const isNumber = typeof source === "number";
  if (!isNumber && (values.ndim !== index.ndim || index.shape.some((size, i) => size > values.shape[i]!)))
    throw new OperatorError(
      row.name,
      `the source has shape ${describeShape(values.shape)} and the index ${describeShape(index.shape)}; expected sizes of at least the index's`,
    );
  const fitting = isNumber ? expand(values, index.shape) : partFor(values, index.shape, null);
  const part = partFor(input, index.shape, d);
  const changed = apply(row, [byThree(part, d), byThree(index, d), byThree(fitting, d)], {});
  return replaced(input, reshape(changed, part.shape), 0);
}

/** The input with a part at its beginning, smaller in some dimensions from `dim` on, in place of what it had there. */
function replaced(input: Tensor, part: Tensor, dim: number): Tensor {
  if (dim >= input.ndim) return part;
  const [whole, size] = [input.shape[dim]!, part.shape[dim]!];
  if (size === whole) return replaced(input, part, dim + 1);
  const changed = replaced(narrow(input, dim, 0, size), part, dim + 1);
  return cat([changed, narrow(input, dim, size, whole - size)], dim);
}

/** The index for every outer and inner position. */
const everywhere = (index: Tensor, outer: number, inner: number): Tensor =>
  expand(reshape(index, [1, index.numel, 1]), [outer, index.numel, inner]);

/** Entries of a dimension, picked by a vector of indices. */
export function indexSelect(input: Tensor, dim: number, index: Tensor): Tensor {
  const d = normalizeDim("indexSelect", dim, input.ndim);
  checkVector("indexSelect", index);
  const [outer, , inner] = threeSizes(input, d);
  const picked = apply(gatherRow, [byThree(input, d), everywhere(index, outer, inner)], {});
  return reshape(picked, input.ndim === 0 ? [] : input.shape.with(d, index.numel));
}

function checkVector(operator: string, index: Tensor): void {
  checkIndex(operator, index);
  if (index.ndim > 1)
    throw new OperatorError(operator, `the index has shape ${describeShape(index.shape)}; expected a vector`);
}

/** Adds `alpha` times the entries of `source` to those of the input that a vector of indices names. */
export function indexAdd(input: Tensor, dim: number, index: Tensor, source: Tensor, alpha = 1): Tensor {
  const d = normalizeDim("indexAdd", dim, input.ndim);
  checkVector("indexAdd", index);
  const [outer, , inner] = threeSizes(input, d);
  if (source.numel !== outer * index.numel * inner)
    throw new OperatorError(
      "indexAdd",
      `the source has shape ${describeShape(source.shape)}; expected the input's ${describeShape(input.shape)} with ${index.numel} entries in dimension ${dim}`,
    );
  const values = reshape(alpha === 1 ? to(source, input.dtype) : mul(source, alpha), [outer, index.numel, inner]);
  const added = apply(scatterAddRow, [byThree(input, d), everywhere(index, outer, inner), to(values, input.dtype)], {});
  return reshape(added, input.shape);
}

/** Gather with broadcasting of the other dimensions; without `dim`, of the elements in row-major order. */
export function takeAlongDim(input: Tensor, indices: Tensor, dim: number | null = null): Tensor {
  checkIndex("takeAlongDim", indices);
  if (dim === null) return gather(reshape(input, [input.numel]), 0, reshape(indices, [indices.numel]));
  const d = normalizeDim("takeAlongDim", dim, input.ndim);
  const others = (of: Tensor): Shape => (of.ndim === 0 ? [] : of.shape.with(d, 1));
  const shape = input.ndim === indices.ndim ? broadcastShapes(others(input), others(indices)) : null;
  if (!shape)
    throw new OperatorError(
      "takeAlongDim",
      `the indices have shape ${describeShape(indices.shape)} and the input ${describeShape(input.shape)}; expected shapes that broadcast but for dimension ${dim}`,
    );
  if (input.ndim === 0) return gather(input, 0, indices);
  return gather(expand(input, shape.with(d, input.shape[d]!)), d, expand(indices, shape.with(d, indices.shape[d]!)));
}

import { type Shader, spread } from "../../gpu";
import type { ComputeType } from "../dtype";
import type { BufferValue, Lowering } from "./table";

/**
 * Elements that are sorted by counting, each against all others of its block, before blocks are merged; and elements
 * that one invocation merges.
 */
const blockLength = 16;

const blocks: Shader = {
  name: "sort blocks",
  bindings: ["read", "write", "write"],
  code: /* wgsl */ `
struct Uniforms { count: u32, length: u32, kind: u32, is_descending: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;
// A number whose order is the element's: NaN comes after infinity, and both zeros are one.
fn key_of(bits: u32) -> u32 {
  var key = bits;
  if (u.kind == 0u) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      key = 0xffffffffu;
    } else if (bits != 0x80000000u) {
      key = bits ^ select(0x80000000u, 0xffffffffu, (bits >> 31u) == 1u);
    }
  } else if (u.kind == 1u) {
    key = bits ^ 0x80000000u;
  }
  return select(key, ~key, u.is_descending == 1u);
}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let index = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (index >= u.count) { return; }
  let position = index % u.length;
  let row = index - position;
  let first = position - position % ${blockLength}u;
  let end = min(first + ${blockLength}u, u.length);
  let key = key_of(values[index]);
  var rank = first;
  for (var i = first; i < end; i++) {
    let other = key_of(values[row + i]);
    if (other < key || (other == key && i < position)) { rank++; }
  }
  keys[row + rank] = key;
  order[row + rank] = position;
}`,
};

const merge: Shader = {
  name: "sort merge",
  bindings: ["read", "read", "write", "write"],
  code: /* wgsl */ `
struct Uniforms { rows: u32, parts: u32, length: u32, width: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read_write> out_keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> out_order: array<u32>;
// Each invocation finds where its elements of the result begin in both runs (O. Green, R. McColl, D. Bader: merge path),
// and takes the smaller from there on; of equal keys, those of the left run come first.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let index = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (index >= u.parts * u.rows) { return; }
  let row = index / u.parts * u.length;
  let first = index % u.parts * ${blockLength}u;
  let start = first - first % (2u * u.width);
  let middle = min(start + u.width, u.length);
  let end = min(start + 2u * u.width, u.length);
  let before = first - start;
  var low = before - min(before, end - middle);
  var high = min(before, middle - start);
  while (low < high) {
    let at = (low + high) / 2u;
    if (keys[row + start + at] <= keys[row + middle + before - 1u - at]) { low = at + 1u; } else { high = at; }
  }
  var left = start + low;
  var right = middle + before - low;
  for (var to = first; to < min(first + ${blockLength}u, end); to++) {
    let takes_left = left < middle && (right >= end || keys[row + left] <= keys[row + right]);
    let at = select(right, left, takes_left);
    out_keys[row + to] = keys[row + at];
    out_order[row + to] = order[row + at];
    left += select(0u, 1u, takes_left);
    right += select(1u, 0u, takes_left);
  }
}`,
};

const kindOf = { float32: 0, int32: 1, bool: 2 } as const satisfies Record<ComputeType, number>;

/**
 * Sorts the rows of a dense [rows, length], keeping the order of equal elements.
 * @param order gets each element's position before: [rows, length] of int32.
 * @returns the sorted keys: a u32 for each element, which for ascending int32 is the value with its highest bit flipped.
 */
export function emitSort(
  lowering: Lowering,
  values: BufferValue,
  descending: boolean,
  order: BufferValue,
): BufferValue {
  const [rows, length] = values.shape as [number, number];
  const count = rows * length;
  const parts = Math.ceil(length / blockLength);
  let width = blockLength;
  // Each step's results, of which the last must be `order`.
  const steps = length <= blockLength ? 0 : Math.ceil(Math.log2(length / blockLength));
  const scratch = () => lowering.allocate([rows, length], "int32");
  const orders = [order, ...(steps > 0 ? [scratch()] : [])];
  const keys = [scratch(), ...(steps > 0 ? [scratch()] : [])];
  lowering.dispatch({
    shader: blocks,
    bindings: [values, keys[steps % 2]!, orders[steps % 2]!],
    uniforms: [count, length, kindOf[values.dtype], descending ? 1 : 0],
    grid: spread(Math.ceil(count / 64)),
    work: count * blockLength * 2,
  });
  for (let left = steps; left > 0; left--) {
    const [from, to] = [left % 2, (left - 1) % 2];
    lowering.dispatch({
      shader: merge,
      bindings: [keys[from]!, orders[from]!, keys[to]!, orders[to]!],
      uniforms: [rows, parts, length, width],
      grid: spread(Math.ceil((rows * parts) / 64)),
      work: count * 8,
    });
    width *= 2;
  }
  return keys[0]!;
}

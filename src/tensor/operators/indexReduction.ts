import { spread } from "../../gpu";
import { type ComputeType, wgslType } from "../dtype";
import { sizeOf } from "../shape";
import { isNan } from "./mathShader";
import { type BufferValue, innerOffset, type LoweredNode, type Lowering, type Producer } from "./table";

/** Elements that one invocation looks through; the best of longer stretches are compared by a second kernel. */
const stretchLength = 512;

const fields = "length: u32, inner: u32, stretches: u32, run: u32, results: u32, offset: u32,";

/** The element that is `better` wins, a NaN above all, and the first among equals. */
const compare = (better: string) => /* wgsl */ `
fn wins(x: f32, best: f32) -> bool { return x ${better} best || (is_nan(x) && !is_nan(best)); }
fn first_of(position: u32) -> u32 { return u.offset + (position / u.inner) * u.length * u.inner + position % u.inner; }`;

/** int32 elements above 2^24 would be rounded as f32, so they are compared as they are. */
const compareIntegers = (better: string, type: string) =>
  compare(better).replace(/fn wins.*\n/, `fn wins(x: ${type}, best: ${type}) -> bool { return x ${better} best; }\n`);

const main = (body: string) => /* wgsl */ `
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.results) { return; }
  ${body}
}`;

const bestOfStretch = main(/* wgsl */ `
  let first = first_of(i / u.stretches);
  let start = (i % u.stretches) * u.run;
  let end = min(start + u.run, u.length);
  let inner = u.inner;
  var best = start;
  var value = load_a(first + start * inner);
  for (var at = start + 1u; at < end; at++) {
    let x = load_a(first + at * inner);
    if (wins(x, value)) { value = x; best = at; }
  }
  store(i, i32(best));`);

const bestOfBest = main(/* wgsl */ `
  let first = first_of(i);
  var best = stretch_best[i * u.stretches];
  var value = a[first + u32(best) * u.inner];
  for (var s = 1u; s < u.stretches; s++) {
    let at = stretch_best[i * u.stretches + s];
    let x = a[first + u32(at) * u.inner];
    if (wins(x, value)) { value = x; best = at; }
  }
  store(i, best);`);

/** Lowers argmax or argmin over one dimension (or none, for a scalar). */
export function lowerIndexReduction(
  lowering: Lowering,
  name: string,
  better: ">" | "<",
  { inputs: [input], attributes: { dims } }: LoweredNode<{ readonly dims: readonly number[] }>,
): BufferValue {
  const { shape, dtype } = input!;
  const [dim = shape.length] = dims;
  const length = shape[dim] ?? 1;
  const inner = sizeOf(shape.slice(dim + 1));
  const positions = length === 0 ? 0 : sizeOf(shape) / length;
  if (positions === 0) return lowering.result();
  const stretches = Math.ceil(length / stretchLength);
  const source = lowering.dense(input!);
  const type = wgslType[dtype];
  // Where two kernels read it, a chain before it is not computed on the way.
  const load = stretches > 1 ? `fn load_a(i: u32) -> ${type} { return a[i]; }\n` : "";
  const kernel = (results: number, code: string): Omit<Producer, "inputs"> => ({
    name,
    fields,
    uniforms: [length, inner, stretches, Math.min(length, stretchLength), results, innerOffset(source)],
    helpers: isNan + load + compareOf(better, dtype),
    code,
    grid: spread(Math.ceil(results / 64)),
    work: 2 * sizeOf(shape),
  });
  const a = { name: "a", type, value: source };
  const first = { ...kernel(positions * stretches, bestOfStretch), inputs: [a] };
  if (stretches === 1) return lowering.produce({ ...first, loadsFirst: "one" });
  const partial = lowering.allocate([positions, stretches], "int32");
  lowering.produceInto(first, partial);
  return lowering.produce({
    ...kernel(positions, bestOfBest),
    inputs: [a, { name: "stretch_best", type: "i32", value: partial }],
  });
}

const compareOf = (better: string, dtype: ComputeType): string =>
  dtype === "float32" ? compare(better) : compareIntegers(better, wgslType[dtype]);

import type { Access, Shader } from "../../gpu";

/*
 * The kernels of attention without the matrix of scores (Dao et al. 2022): each query walks the keys once with a running
 * maximum, and keeps the logarithm of its sum; the backward pass computes the weights again from that. An invocation
 * takes `rows` queries (or keys) together, which reads less memory for each product; whatever their number, each sum
 * takes its terms in the same order.
 */

/** What an invocation computes: `quads` vectors of 4 features for each of `rows` rows. */
export interface AttentionTile {
  readonly quads: number;
  readonly rows: number;
  /** Whether something is added to the scores. */
  readonly isMasked: boolean;
}

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const lines = (list: readonly string[]): string => list.join("\n");
const xyzw = ["x", "y", "z", "w"] as const;

/** Where a tensor of [images, heads, places, features] lies, in vectors of 4: its first, and the steps. */
const placeNames = ["q", "k", "v", "o", "g", "dq", "dk", "dv"] as const;
export type PlaceName = (typeof placeNames)[number];
/** In the order of the uniforms. */
export const attentionPlaces: readonly PlaceName[] = placeNames;

const uniforms = /* wgsl */ `
struct Uniforms {
  ${placeNames.map((name) => `${name}: vec4u,`).join(" ")}
  // Tiles in all, and of a head.
  count: u32,
  tiles: u32,
  heads: u32,
  keyHeads: u32,
  queries: u32,
  keys: u32,
  scale: f32,
  isCausal: u32,
  // Where the logarithms of the sums begin in the results, and how many there are. Each is there in two parts.
  sums: u32,
  sumCount: u32,
  maskOffset: u32,
  maskImage: u32,
  maskHead: u32,
  maskQuery: u32,
  maskKey: u32,
}
@group(0) @binding(0) var<uniform> u: Uniforms;
fn at(where_: vec4u, image: u32, head: u32, place: u32) -> u32 {
  return where_.x + image * where_.y + head * where_.z + place * where_.w;
}
const nothing = -3.0e38;
`;

const maskFunction = (isMasked: boolean) => /* wgsl */ `
fn mask_at(image: u32, head: u32, query: u32, key: u32) -> f32 {
  ${isMasked ? "return mask[u.maskOffset + image * u.maskImage + head * u.maskHead + query * u.maskQuery + key * u.maskKey];" : "return 0.0;"}
}
`;

interface Buffer {
  readonly name: string;
  readonly type: string;
  readonly access: Access;
}

const read = (name: string, type = "vec4f"): Buffer => ({ name, type, access: "read" });
const write = (name: string, type = "vec4f"): Buffer => ({ name, type, access: "write" });
const operands = [read("query"), read("key"), read("value"), read("mask", "f32")];

function kernel(
  name: string,
  { quads, rows, isMasked }: AttentionTile,
  buffers: readonly Buffer[],
  body: string,
): Shader {
  const declared = buffers.map(
    ({ name: of, type, access }, i) =>
      `@group(0) @binding(${i + 1}) var<storage, ${access === "read" ? "read" : "read_write"}> ${of}: array<${type}>;`,
  );
  const code = /* wgsl */ `${uniforms}${lines(declared)}${maskFunction(isMasked)}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  let tile = i % u.tiles * ${rows}u;
${body}
}`;
  return {
    name: `${name} of ${4 * quads} by ${rows}${isMasked ? ", masked" : ""}`,
    code,
    bindings: buffers.map(({ access }) => access),
  };
}

/** Variables for the vectors of each row: `NAME_row_quad`. */
const declare = (tile: AttentionTile, name: string, value: (row: number, quad: number) => string): string =>
  lines(range(tile.rows).flatMap((r) => range(tile.quads).map((d) => `  var ${name}${r}_${d} = ${value(r, d)};`)));

/** The vectors of one row, as `let NAME_quad`. */
const load = ({ quads }: AttentionTile, name: string, buffer: string, at: string): string =>
  lines(range(quads).map((d) => `    let ${name}${d} = ${buffer}[${at} + ${d}u];`));

/** Statements that leave the product of two rows' features in `NAME`: vectors are added up first, then their parts. */
const dotProduct = ({ quads }: AttentionTile, name: string, a: (d: number) => string, b: (d: number) => string) =>
  lines([
    `    var ${name}_sum = ${a(0)} * ${b(0)};`,
    ...range(quads - 1).map((d) => `    ${name}_sum = fma(${a(d + 1)}, ${b(d + 1)}, ${name}_sum);`),
    `    let ${name} = (${name}_sum.x + ${name}_sum.y) + (${name}_sum.z + ${name}_sum.w);`,
  ]);

/** Statements that find a tile of queries: its image, its head, the head of its keys, and the keys that any of it sees. */
const ofQueries = ({ rows }: AttentionTile) => /* wgsl */ `
  let head = i / u.tiles % u.heads;
  let image = i / (u.tiles * u.heads);
  let keyHead = head / (u.heads / u.keyHeads);
  let rowsSoFar = (image * u.heads + head) * u.queries;
${lines(range(rows).map((r) => `  let place${r} = min(tile + ${r}u, u.queries - 1u);`))}
${lines(range(rows).map((r) => `  let seen${r} = select(u.keys, min(u.keys, place${r} + 1u), u.isCausal == 1u);`))}
  let seen = seen${rows - 1};
  let keyBase = at(u.k, image, keyHead, 0u);
  let valueBase = at(u.v, image, keyHead, 0u);`;

/** Keys whose scores are known before a maximum is taken and the sums so far are scaled. */
const block = 4;

/** Writes the results, and each query's logarithm of its sum. */
function forward(tile: AttentionTile): Shader {
  const { quads, rows } = tile;
  const ofKey = (c: number) => /* wgsl */ `
    {
    let j = min(first + ${c}u, u.keys - 1u);
    let at_row = keyBase + j * u.k.w;
${load(tile, "k", "key", "at_row")}
${lines(
  range(rows).map(
    (r) => `    {
${dotProduct(
  tile,
  "score",
  (d) => `q${r}_${d}`,
  (d) => `k${d}`,
)}
    score${r}.${xyzw[c]} = select(nothing, score + mask_at(image, head, place${r}, j), first + ${c}u < seen${r});
    }`,
  ),
)}
    }`;
  const ofValue = (c: number) => /* wgsl */ `
    {
    let at_row = valueBase + min(first + ${c}u, u.keys - 1u) * u.v.w;
${load(tile, "v", "value", "at_row")}
${lines(
  range(rows).flatMap((r) =>
    range(quads).map((d) => `    total${r}_${d} = fma(vec4f(weight${r}.${xyzw[c]}), v${d}, total${r}_${d});`),
  ),
)}
    }`;
  const weights = range(rows).map(
    (r) => `    let largest${r} = max(top${r}, max(max(score${r}.x, score${r}.y), max(score${r}.z, score${r}.w)));
    let kept${r} = exp(top${r} - largest${r});
    top${r} = largest${r};
    // A masked score of minus infinity weighs nothing.
    let weight${r} = select(exp(score${r} - largest${r}), vec4f(), score${r} <= vec4f(nothing));
    sum${r} = sum${r} * kept${r} + ((weight${r}.x + weight${r}.y) + (weight${r}.z + weight${r}.w));
${lines(range(quads).map((d) => `    total${r}_${d} *= kept${r};`))}`,
  );
  const store = range(rows).map(
    (r) => `  if (tile + ${r}u < u.queries) {
    let to = at(u.o, image, head, tile + ${r}u);
${lines(range(quads).map((d) => `    out[to + ${d}u] = total${r}_${d} / sum${r};`))}
    let sumAt = u.sums + rowsSoFar + tile + ${r}u;
    let logSum = top${r} + log(sum${r});
    // The first bits and the rest: either part fits a narrow float.
    let coarse = bitcast<f32>(bitcast<u32>(logSum) & 0xffff0000u);
    let restAt = sumAt + u.sumCount;
    out[sumAt >> 2u][sumAt & 3u] = coarse;
    out[restAt >> 2u][restAt & 3u] = logSum - coarse;
  }`,
  );
  return kernel(
    "attention",
    tile,
    [...operands, write("out")],
    /* wgsl */ `${ofQueries(tile)}
${lines(range(rows).map((r) => `  let from${r} = at(u.q, image, head, place${r});`))}
${declare(tile, "q", (r, d) => `query[from${r} + ${d}u] * u.scale`)}
${declare(tile, "total", () => "vec4f()")}
${lines(range(rows).map((r) => `  var top${r} = -3.4e38;\n  var sum${r} = 0.0;`))}
  for (var first = 0u; first < seen; first += ${block}u) {
${lines(range(rows).map((r) => `    var score${r} = vec4f();`))}
${lines(range(block).map(ofKey))}
${lines(weights)}
${lines(range(block).map(ofValue))}
  }
${lines(store)}`,
  );
}

/** Writes the gradient of the queries, and for each the logarithm of its sum and the product of its output and gradient. */
function queryGradient(tile: AttentionTile): Shader {
  const { quads, rows } = tile;
  const ofRow = (r: number) => /* wgsl */ `    {
${dotProduct(
  tile,
  "score",
  (d) => `q${r}_${d}`,
  (d) => `k${d}`,
)}
${dotProduct(
  tile,
  "along",
  (d) => `g${r}_${d}`,
  (d) => `v${d}`,
)}
    let masked = score + mask_at(image, head, place${r}, j);
    let weight = select(exp(masked - logSum${r}), 0.0, masked <= nothing || j >= seen${r});
    let slope = vec4f(weight * (along - delta${r}) * u.scale);
${lines(range(quads).map((d) => `    total${r}_${d} = fma(slope, k${d}, total${r}_${d});`))}
    }`;
  const delta = range(rows).map(
    (r) => `  let sumAt${r} = u.sums + rowsSoFar + place${r};
  let restAt${r} = sumAt${r} + u.sumCount;
  let logSum${r} = results[sumAt${r} >> 2u][sumAt${r} & 3u] + results[restAt${r} >> 2u][restAt${r} & 3u];
  var product${r} = vec4f();
  {
    let at_row = at(u.o, image, head, place${r});
${lines(range(quads).map((d) => `    product${r} = fma(g${r}_${d}, results[at_row + ${d}u], product${r});`))}
  }
  let delta${r} = (product${r}.x + product${r}.y) + (product${r}.z + product${r}.w);`,
  );
  const store = range(rows).map(
    (r) => `  if (tile + ${r}u < u.queries) {
    let to = at(u.dq, image, head, tile + ${r}u);
${lines(range(quads).map((d) => `    out[to + ${d}u] = total${r}_${d};`))}
    kept[rowsSoFar + tile + ${r}u] = vec2f(logSum${r}, delta${r});
  }`,
  );
  return kernel(
    "attentionQueryGradient",
    tile,
    [...operands, read("results"), read("gradient"), write("kept", "vec2f"), write("out")],
    /* wgsl */ `${ofQueries(tile)}
${lines(range(rows).map((r) => `  let from${r} = at(u.q, image, head, place${r});\n  let fromG${r} = at(u.g, image, head, place${r});`))}
${declare(tile, "q", (r, d) => `query[from${r} + ${d}u] * u.scale`)}
${declare(tile, "g", (r, d) => `gradient[fromG${r} + ${d}u]`)}
${declare(tile, "total", () => "vec4f()")}
${lines(delta)}
  for (var j = 0u; j < seen; j++) {
    let at_row = keyBase + j * u.k.w;
${load(tile, "k", "key", "at_row")}
    let fromV = valueBase + j * u.v.w;
${load(tile, "v", "value", "fromV")}
${lines(range(rows).map(ofRow))}
  }
${lines(store)}`,
  );
}

/** Writes the gradients of keys and values, from what queryGradient kept. */
function keyGradient(tile: AttentionTile): Shader {
  const { quads, rows } = tile;
  const ofRow = (r: number) => /* wgsl */ `      {
${dotProduct(
  tile,
  "score",
  (d) => `q${d}`,
  (d) => `k${r}_${d}`,
)}
${dotProduct(
  tile,
  "along",
  (d) => `g${d}`,
  (d) => `v${r}_${d}`,
)}
      let masked = score + mask_at(image, head, j, place${r});
      let weight = select(exp(masked - sumAndDelta.x), 0.0, masked <= nothing || j < from${r});
      let slope = vec4f(weight * (along - sumAndDelta.y) * u.scale);
${lines(range(quads).map((d) => `      ofKey${r}_${d} = fma(slope, q${d}, ofKey${r}_${d});`))}
${lines(range(quads).map((d) => `      ofValue${r}_${d} = fma(vec4f(weight), g${d}, ofValue${r}_${d});`))}
      }`;
  const store = range(rows).map(
    (r) => `  if (tile + ${r}u < u.keys) {
    let toKey = at(u.dk, image, keyHead, tile + ${r}u);
    let toValue = at(u.dv, image, keyHead, tile + ${r}u);
${lines(range(quads).map((d) => `    out[toKey + ${d}u] = ofKey${r}_${d};\n    out[toValue + ${d}u] = ofValue${r}_${d};`))}
  }`,
  );
  return kernel(
    "attentionKeyGradient",
    tile,
    [...operands, read("gradient"), read("kept", "vec2f"), write("out")],
    /* wgsl */ `
  let keyHead = i / u.tiles % u.keyHeads;
  let image = i / (u.tiles * u.keyHeads);
  let served = u.heads / u.keyHeads;
${lines(range(rows).map((r) => `  let place${r} = min(tile + ${r}u, u.keys - 1u);\n  let from${r} = select(0u, place${r}, u.isCausal == 1u);`))}
${lines(range(rows).map((r) => `  let fromK${r} = at(u.k, image, keyHead, place${r});\n  let fromV${r} = at(u.v, image, keyHead, place${r});`))}
${declare(tile, "k", (r, d) => `key[fromK${r} + ${d}u] * u.scale`)}
${declare(tile, "v", (r, d) => `value[fromV${r} + ${d}u]`)}
${declare(tile, "ofKey", () => "vec4f()")}
${declare(tile, "ofValue", () => "vec4f()")}
  for (var h = 0u; h < served; h++) {
    let head = keyHead * served + h;
    let queryBase = at(u.q, image, head, 0u);
    let gradientBase = at(u.g, image, head, 0u);
    let rowsSoFar = (image * u.heads + head) * u.queries;
    for (var j = select(0u, tile, u.isCausal == 1u); j < u.queries; j++) {
      let sumAndDelta = kept[rowsSoFar + j];
      let at_row = queryBase + j * u.q.w;
${load(tile, "q", "query", "at_row")}
      let fromG = gradientBase + j * u.g.w;
${load(tile, "g", "gradient", "fromG")}
${lines(range(rows).map(ofRow))}
    }
  }
${lines(store)}`,
  );
}

/** A kernel for each tile. */
function family(of: (tile: AttentionTile) => Shader): (tile: AttentionTile) => Shader {
  const shaders = new Map<number, Shader>();
  return (tile) => {
    const key = (tile.quads * 16 + tile.rows) * 2 + Number(tile.isMasked);
    const shader = shaders.get(key) ?? of(tile);
    shaders.set(key, shader);
    return shader;
  };
}

export const attentionShader = family(forward);
export const attentionQueryGradientShader = family(queryGradient);
export const attentionKeyGradientShader = family(keyGradient);

import type { Shader } from "../gpu";
import type { NarrowType } from "./dtype";

/**
 * How kernels read and write 2-byte floats, which they compute in float32. Two elements share a u32, the first in its
 * low half. Rounding is to nearest, ties to even; what is too large becomes infinite, NaN stays NaN, and subnormal
 * halves are exact. All of it is done on bits: what WGSL's conversions and pack2x16float do with values that are too
 * large or between two halves differs between adapters.
 */

const roundBits = {
  float16: /* wgsl */ `
  let bits = bitcast<vec4u>(x);
  let size = bits & vec4u(0x7fffffffu);
  let nearest = (size + 0xfffu + ((size >> vec4u(13u)) & vec4u(1u))) & vec4u(0xffffe000u);
  // Below the normal halves lie multiples of 2^-24: adding 0.5 leaves as many of them in the last places.
  let steps = bitcast<vec4u>(bitcast<vec4f>(size) + 0.5) - vec4u(0x3f000000u);
  var result = select(nearest, bitcast<vec4u>(vec4f(steps) * 5.9604644775390625e-8), size < vec4u(0x38800000u));
  result = select(result, vec4u(0x7f800000u), size >= vec4u(0x477ff000u));
  result = select(result, size, size > vec4u(0x7f800000u));
  return bitcast<vec4f>(result | (bits & vec4u(0x80000000u)));`,
  bfloat16: /* wgsl */ `
  let bits = bitcast<vec4u>(x);
  let nearest = bits + 0x7fffu + ((bits >> vec4u(16u)) & vec4u(1u));
  let isNan = (bits & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
  return bitcast<vec4f>(select(nearest, bits | vec4u(0x400000u), isNan) & vec4u(0xffff0000u));`,
} as const satisfies Record<NarrowType, string>;

const packBits = {
  float16: /* wgsl */ `
  let bits = bitcast<vec4u>(x);
  let size = bits & vec4u(0x7fffffffu);
  var halves = select((size - vec4u(0x38000000u)) >> vec4u(13u), vec4u(abs(x) * 16777216.0), size < vec4u(0x38800000u));
  halves = select(halves, vec4u(0x7c00u), size >= vec4u(0x47800000u));
  halves = select(halves, vec4u(0x7e00u), size > vec4u(0x7f800000u));
  halves |= (bits >> vec4u(16u)) & vec4u(0x8000u);
  return vec2u(halves.x | (halves.y << 16u), halves.z | (halves.w << 16u));`,
  bfloat16: /* wgsl */ `
  let halves = bitcast<vec4u>(x);
  return vec2u((halves.x >> 16u) | halves.y, (halves.z >> 16u) | halves.w);`,
} as const satisfies Record<NarrowType, string>;

const unpackWord = {
  float16: "unpack2x16float(word)",
  bfloat16: "bitcast<vec2f>(vec2u(word << 16u, word & 0xffff0000u))",
} as const satisfies Record<NarrowType, string>;

/** WGSL functions: `round_TYPE(vec4f)` gives the nearest values of the type, as float32. */
export const roundFunction = (type: NarrowType): string => `fn round_${type}(x: vec4f) -> vec4f {${roundBits[type]}\n}`;

/** `pack_TYPE(vec4f)` gives the two words of four values that are rounded. */
export const packFunction = (type: NarrowType): string => `fn pack_${type}(x: vec4f) -> vec2u {${packBits[type]}\n}`;

/** `unpack_TYPE(u32)` gives the two values of a word. */
export const unpackFunction = (type: NarrowType): string =>
  `fn unpack_${type}(word: u32) -> vec2f { return ${unpackWord[type]}; }`;

/** What a kernel that uses native halves has as its first line. */
export const enableHalves = "enable f16;\n";

/**
 * A shader that reads some of its f32 or vec4f bindings from memory of narrow types; null where one of them is read as
 * something else.
 * @param types by binding; null for those that stay.
 * @param hasHalves whether the device has `shader-f16`.
 */
export function withNarrowReads(
  shader: Shader,
  types: readonly (NarrowType | null)[],
  hasHalves: boolean,
): Shader | null {
  let { code } = shader;
  const functions = new Set<string>();
  for (const [i, type] of types.entries()) {
    if (!type) continue;
    const declaration = new RegExp(
      `(@group\\(0\\) @binding\\(${i + 1}\\) var<storage, read> )(\\w+): array<(f32|vec4f|vec4<f32>)>;`,
    );
    const match = declaration.exec(code);
    if (!match) return null;
    const [text, head, name = "", element] = match;
    const isNative = hasHalves && type === "float16";
    const inVectors = element !== "f32";
    const stored = isNative ? (inVectors ? "vec4<f16>" : "f16") : inVectors ? "vec2u" : "u32";
    const read = isNative
      ? inVectors
        ? `vec4f(${name}[i])`
        : `f32(${name}[i])`
      : inVectors
        ? `vec4f(unpack_${type}(${name}[i].x), unpack_${type}(${name}[i].y))`
        : `unpack_${type}(${name}[i >> 1u])[i & 1u]`;
    if (!isNative) functions.add(unpackFunction(type));
    functions.add(`fn narrow_${name}(i: u32) -> ${inVectors ? "vec4f" : "f32"} { return ${read}; }`);
    const at = match.index + text.length;
    code = `${withCalls(code.slice(0, match.index), name)}${head}${name}: array<${stored}>;${withCalls(code.slice(at), name)}`;
    if (isNative && !code.startsWith(enableHalves)) code = enableHalves + code;
  }
  const missing = [...functions].filter((text) => !code.includes(text));
  return { ...shader, code: `${code}\n${missing.join("\n")}\n` };
}

/** Replaces `name[index]` by `narrow_name(u32(index))`. */
function withCalls(code: string, name: string): string {
  const access = new RegExp(`(?<![\\w.])${name}\\[`, "g");
  let result = "";
  let from = 0;
  for (let match = access.exec(code); match; match = access.exec(code)) {
    const start = match.index + match[0].length;
    const end = closing(code, start);
    result += `${code.slice(from, match.index)}narrow_${name}(u32(${withCalls(code.slice(start, end), name)}))`;
    from = end + 1;
    access.lastIndex = from;
  }
  return result + code.slice(from);
}

/** Where the bracket that was opened before `start` is closed. */
function closing(code: string, start: number): number {
  let depth = 1;
  for (let i = start; i < code.length; i++) {
    if (code[i] === "[") depth += 1;
    else if (code[i] === "]" && --depth === 0) return i;
  }
  throw new Error(`A bracket in this shader is not closed: ${code.slice(start, start + 80)}`);
}

import type { Arithmetic, UpdateRule } from "./rules/rule";

/** A module's `update`: pointers to weights, gradients and each state array, the weights' end, then the scalars. */
export type WasmUpdate = (...pointersThenScalars: number[]) => void;

const code = {
  i32: 0x7f,
  f32: 0x7d,
  v128: 0x7b,
  localGet: [0x20],
  localSet: [0x21],
  loop: [0x03, 0x40],
  end: [0x0b],
  branchIf: [0x0d],
  i32Const: [0x41],
  i32LessThanUnsigned: [0x49],
  i32Add: [0x6a],
  // Aligned to 16 bytes (2^4), at offset 0.
  v128Load: [0xfd, 0x00, 4, 0],
  v128Store: [0xfd, 0x0b, 4, 0],
  v128And: [0xfd, 0x4e],
  v128AndNot: [0xfd, 0x4f],
  f32x4Splat: [0xfd, 0x13],
  f32x4LessThan: [0xfd, 0x43],
  f32x4GreaterThan: [0xfd, 0x44],
  f32x4Abs: [0xfd, 0xe0, 0x01],
  f32x4Neg: [0xfd, 0xe1, 0x01],
  f32x4Sqrt: [0xfd, 0xe3, 0x01],
  f32x4Add: [0xfd, 0xe4, 0x01],
  f32x4Sub: [0xfd, 0xe5, 0x01],
  f32x4Mul: [0xfd, 0xe6, 0x01],
  f32x4Div: [0xfd, 0xe7, 0x01],
  f32x4Max: [0xfd, 0xe9, 0x01],
  /** The smallest normal float32, 2^-126, four times. */
  smallestNormal: [0xfd, 0x0c, ...Array.from({ length: 4 }, () => [0x00, 0x00, 0x80, 0x00]).flat()],
  /** Zero and one, four times. */
  zero: [0xfd, 0x0c, ...new Array<number>(16).fill(0)],
  one: [0xfd, 0x0c, ...Array.from({ length: 4 }, () => [0x00, 0x00, 0x80, 0x3f]).flat()],
} as const;

/**
 * Compiles an update rule to WASM SIMD: four weights at a time, one IEEE operation after the other without fused
 * multiply-add, so that every engine computes the same bits. The arrays lie in `memory` at multiples of 16 bytes.
 */
export function compileUpdate(rule: UpdateRule, memory: WebAssembly.Memory): WasmUpdate {
  const scalars = Object.keys(rule.scalars);
  const arrays = 2 + rule.state.length;
  const end = arrays;
  const firstScalar = arrays + 1;
  const parameters = [...Array<number>(arrays + 1).fill(code.i32), ...scalars.map(() => code.f32)];

  const body: number[] = [];
  let locals = 0;
  const local = (instructions: readonly number[]): number => {
    const index = parameters.length + locals++;
    body.push(...instructions, ...code.localSet, ...unsigned(index));
    return index;
  };
  const get = (index: number) => [...code.localGet, ...unsigned(index)];
  const unary = (operation: readonly number[]) => (a: number) => local([...get(a), ...operation]);
  const binary = (operation: readonly number[]) => (a: number, b: number) =>
    local([...get(a), ...get(b), ...operation]);
  const arithmetic: Arithmetic<number> = {
    add: binary(code.f32x4Add),
    subtract: binary(code.f32x4Sub),
    multiply: binary(code.f32x4Mul),
    divide: binary(code.f32x4Div),
    maximum: binary(code.f32x4Max),
    squareRoot: unary(code.f32x4Sqrt),
    negate: unary(code.f32x4Neg),
    absolute: unary(code.f32x4Abs),
    sign: (a) => {
      const where = (comparison: readonly number[]) =>
        local([...get(a), ...code.zero, ...comparison, ...code.one, ...code.v128And]);
      return arithmetic.subtract(where(code.f32x4GreaterThan), where(code.f32x4LessThan));
    },
    // A NaN isn't less than anything, so it stays.
    flush: (a) =>
      local([
        ...get(a),
        ...get(a),
        ...code.f32x4Abs,
        ...code.smallestNormal,
        ...code.f32x4LessThan,
        ...code.v128AndNot,
      ]),
  };

  const splats = new Map(
    scalars.map((name, index) => [name, local([...get(firstScalar + index), ...code.f32x4Splat])]),
  );
  body.push(...code.loop);
  const loaded = Array.from({ length: arrays }, (_, array) => local([...get(array), ...code.v128Load]));
  const [weight = 0, gradient = 0, ...state] = loaded;
  const updated = rule.update(arithmetic, {
    weight,
    gradient,
    state,
    scalar: (name) => {
      const splat = splats.get(name);
      if (splat === undefined) throw new Error(`The update rule reads the scalar ${name}, which it doesn't declare.`);
      return splat;
    },
  });
  const store = (array: number, value: number) => body.push(...get(array), ...get(value), ...code.v128Store);
  store(0, updated.weight);
  updated.state.forEach((value, index) => void store(2 + index, value));
  for (let array = 0; array < arrays; array++)
    body.push(...get(array), ...code.i32Const, 16, ...code.i32Add, ...code.localSet, ...unsigned(array));
  body.push(...get(0), ...get(end), ...code.i32LessThanUnsigned, ...code.branchIf, 0, ...code.end, ...code.end);

  const declaration = [1, ...unsigned(locals), code.v128];
  const bytes = [
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, ...unsigned(parameters.length), ...parameters, 0]),
    ...section(2, [1, ...name("ringlet"), ...name("memory"), 0x02, 0, 0]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name("update"), 0x00, 0]),
    ...section(10, [1, ...unsigned(declaration.length + body.length), ...declaration, ...body]),
  ];
  const instance = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), { ringlet: { memory } });
  const update = instance.exports.update;
  if (typeof update !== "function") throw new Error("The optimizer's WASM module has no function update.");
  return (...values) => void update(...values);
}

/** LEB128, WASM's encoding of an unsigned integer. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const more = rest >= 128 ? 128 : 0;
    bytes.push((rest % 128) | more);
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return bytes;
}

function name(text: string): number[] {
  const bytes = new TextEncoder().encode(text);
  return [...unsigned(bytes.length), ...bytes];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

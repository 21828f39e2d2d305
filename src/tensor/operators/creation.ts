import philox from "../../../shaders/philox.wgsl?raw";
import { PhiloxStream, splitSeed } from "../../base/philox";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { type DType, rounded } from "../dtype";
import { repeatable } from "../recomputation";
import { OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { liveScalars } from "../trace";
import { trigonometry } from "./mathShader";
import type { LoweredNode, Lowering, Operator, TensorType } from "./table";

type CreationAttributes = { readonly shape: Shape; readonly dtype: DType };

function checked(operator: string, { shape, dtype }: CreationAttributes): TensorType {
  for (const size of shape)
    if (!Number.isInteger(size) || size < 0)
      throw new OperatorError(operator, `the shape is [${shape.join(", ")}]; expected integers of at least 0`);
  return { shape, dtype };
}

/** One number in every element. Takes no memory until a kernel needs it as a buffer. */
const fullRow: Operator<CreationAttributes> = {
  name: "full",
  infer: (_, attributes) => checked("full", attributes),
  lower: (_, { shape, dtype, scalars }) => ({ kind: "constant", shape, dtype, scalar: scalars[0]! }),
};

const linear: Shader = {
  name: "arange",
  bindings: ["write"],
  code: /* wgsl */ `
struct Uniforms { start: f32, step: f32, count: u32, is_integer: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i >= u.count) { return; }
  if (u.is_integer == 1u) {
    out[i] = bitcast<u32>(i32(u.start) + i32(i) * i32(u.step));
  } else {
    out[i] = bitcast<u32>(u.start + f32(i) * u.step);
  }
}`,
};

/** Scalars: start, step. */
const arangeRow: Operator<CreationAttributes> = {
  name: "arange",
  infer: (_, attributes) => checked("arange", attributes),
  lower(lowering, { shape, dtype, scalars }) {
    const out = lowering.result();
    const count = sizeOf(shape);
    const [start, step] = scalars.map((scalar) => ({ scalar, dtype: "float32" as const }));
    lowering.dispatch({
      shader: linear,
      bindings: [out],
      uniforms: [start!, step!, count, dtype === "int32" ? 1 : 0],
      grid: spread(Math.ceil(count / 64)),
      work: count,
    });
    return out;
  },
};

function randomShader(name: string, draw: string): Shader {
  return { name, bindings: ["write"], code: philox + draw };
}

const uniformShader = randomShader("rand", "fn draw(i: u32) -> f32 { return unit(word(i)); }");
// Box-Muller, one normal number from two words of its own. 1 - u is in (0, 1], so the logarithm is finite.
const normalShader = randomShader(
  "randn",
  `${trigonometry}
  fn draw(i: u32) -> f32 {
    let pair = philox(vec4u(i, 1u, u.stream), u.key).xy;
    return sqrt(-2.0 * log(1.0 - unit(pair.x))) * sine_of_quarters(6.2831853071795864 * unit(pair.y), 1);
  }`,
);

function emitRandom(shader: Shader, work: number) {
  return (lowering: Lowering, { shape, scalars }: LoweredNode<CreationAttributes>) => {
    const out = lowering.result();
    const count = sizeOf(shape);
    lowering.dispatch({
      shader,
      bindings: [out],
      uniforms: [...scalars.map((scalar) => ({ scalar, dtype: "int32" as const })), count],
      grid: spread(Math.ceil(count / 64)),
      work: count * work,
    });
    return out;
  };
}

/** Scalars: the key's two words, the stream's two words, the first element's index. */
const randRow: Operator<CreationAttributes> = {
  name: "rand",
  infer: (_, attributes) => checked("rand", attributes),
  lower: emitRandom(uniformShader, 200),
};

const randnRow: Operator<CreationAttributes> = {
  name: "randn",
  infer: (_, attributes) => checked("randn", attributes),
  lower: emitRandom(normalShader, 250),
};

export const creation: readonly Operator[] = [fullRow, arangeRow, randRow, randnRow];

export interface CreationOptions {
  readonly dtype?: DType;
  readonly requiresGrad?: boolean;
}

export function full(
  shape: Shape,
  value: number,
  { dtype = "float32", requiresGrad = false }: CreationOptions = {},
): Tensor {
  const result = constant(shape, rounded(value, dtype), dtype);
  result.requiresGrad = requiresGrad;
  return result;
}

/** A tensor full of a number, which is what kernels see, even if the type would round it. */
export const constant = (shape: Shape, value: number, dtype: DType): Tensor =>
  apply(fullRow, [], { shape: [...shape], dtype }, [value]);

export const zeros = (shape: Shape, options: CreationOptions = {}): Tensor => full(shape, 0, options);
export const ones = (shape: Shape, options: CreationOptions = {}): Tensor => full(shape, 1, options);
export const zerosLike = ({ shape, dtype }: Tensor): Tensor => full(shape, 0, { dtype });
export const onesLike = ({ shape, dtype }: Tensor): Tensor => full(shape, 1, { dtype });

/** Numbers from `start` (0) by `step` (1) up to, not including, `end`; int32 where all three are integers. */
export function arange(start: number, end?: number, step = 1, dtype?: DType): Tensor {
  const [from, to] = end === undefined ? [0, start] : [start, end];
  const length = Math.ceil((to - from) / step);
  if (!Number.isFinite(length) || length < 0)
    throw new OperatorError(
      "arange",
      `can't go from ${from} to ${to} by steps of ${step}; expected a step towards the end`,
    );
  const type = dtype ?? ([from, to, step].every(Number.isInteger) ? "int32" : "float32");
  return apply(arangeRow, [], { shape: [length], dtype: type }, [from, step]);
}

let seed = Math.floor(Math.random() * 2 ** 32);
let drawn = 0;

/** Makes the random tensors that follow a function of `value`, an integer from 0 to 2^53. */
export function manualSeed(value: number): void {
  splitSeed(value);
  seed = value;
  drawn = 0;
}

/** A new stream of the seed's random numbers, for what is drawn on the CPU: initial weights. */
export const nextRandomStream = (): PhiloxStream => new PhiloxStream(seed, [drawn++, 0x52494e47]);

export interface RandomOptions extends Pick<CreationOptions, "requiresGrad"> {
  /** The seed's stream to draw from: two 32-bit words, such as (layer, step). Default: a new one for each call. */
  readonly stream?: readonly [number, number];
  readonly seed?: number;
  /** The index in the stream of the first element: a part of a larger tensor draws that tensor's numbers. */
  readonly first?: number;
}

function randomScalars(options: RandomOptions): number[] {
  const stream = options.stream ?? [drawn++, 0x52494e47];
  return [...splitSeed(options.seed ?? seed), ...stream, options.first ?? 0];
}

function random(
  row: Operator<CreationAttributes>,
  shape: Shape,
  draw: () => RandomOptions,
  requiresGrad = false,
): Tensor {
  const result = apply(
    row,
    [],
    { shape: [...shape], dtype: "float32" },
    repeatable(() => liveScalars(() => randomScalars(draw()))),
  );
  result.requiresGrad = requiresGrad;
  return result;
}

/**
 * As `rand`, for a draw that a compiled step makes anew at each call.
 * @param draw says at each call what to draw from.
 */
export function randAnew(shape: Shape, draw: () => RandomOptions): Tensor {
  return random(randRow, shape, draw);
}

/** Uniform numbers in [0, 1), by Philox: the same on every machine (see `PhiloxStream`). */
export function rand(shape: Shape, options: RandomOptions = {}): Tensor {
  return random(randRow, shape, () => options, options.requiresGrad);
}

/** Normal numbers of mean 0 and variance 1; adapters may differ in the last bits. */
export function randn(shape: Shape, options: RandomOptions = {}): Tensor {
  return random(randnRow, shape, () => options, options.requiresGrad);
}

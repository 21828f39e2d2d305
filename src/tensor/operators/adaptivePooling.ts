import gradientCode from "../../../shaders/adaptiveMaxGradient.wgsl?raw";
import indicesCode from "../../../shaders/adaptiveMaxIndices.wgsl?raw";
import takeFromPlanesCode from "../../../shaders/takeFromPlanes.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { isFloating } from "../dtype";
import { describeShape, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { sparseMap, type Tap } from "./sparseMap";
import type { Operator } from "./table";
import { squeeze, unsqueeze } from "./views";
import type { Pair } from "./window";

/** Height and width of the result; null or undefined keeps the input's. */
export type AdaptiveSize = number | null | readonly (number | null)[];

type SizeAttributes = { readonly size: Pair };
type Planes = { readonly shape: Shape };

const gridFor = (count: number) => spread(Math.ceil(count / 64));
const planesOf = ({ shape: [, , height = 0, width = 0] }: Planes): Pair => [height, width];
const resized = ({ shape }: Planes, size: Pair) => [...shape.slice(0, 2), ...size];

const indicesShader: Shader = { name: "adaptiveMaxIndices", code: indicesCode, bindings: ["read", "write"] };

/** Input [N, C, H, W]; output int32 [N, C, H', W']: the index in the plane of each window's largest value. */
const indicesRow: Operator<SizeAttributes> = {
  name: "adaptiveMaxIndices",
  infer: ([input], { size }) => ({ shape: resized(input!, size), dtype: "int32" }),
  lower(lowering, { inputs: [input], attributes: { size }, shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    const plane = planesOf(input!);
    lowering.dispatch({
      shader: indicesShader,
      bindings: [lowering.dense(input!), output],
      uniforms: [count, ...size, ...plane],
      grid: gridFor(count),
      work: 4 * count + sizeOf(input!.shape),
    });
    return output;
  },
};

const takeShader: Shader = { name: "takeFromPlanes", code: takeFromPlanesCode, bindings: ["read", "read", "write"] };

/** Inputs: input [N, C, H, W] and the indices; output: the values there. */
const takeRow: Operator = {
  name: "adaptiveMaxPool",
  infer: ([, indices]) => ({ shape: indices!.shape, dtype: "float32" }),
  lower(lowering, { inputs: [input, indices], shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: takeShader,
      bindings: [lowering.dense(input!), lowering.dense(indices!), output],
      uniforms: [count, sizeOf(planesOf({ shape })), sizeOf(planesOf(input!))],
      grid: gridFor(count),
      work: 3 * count,
    });
    return output;
  },
  backward: ({ inputs: [input, indices], gradient }) => [
    apply(gradientRow, [gradient, indices!], { size: planesOf(input!) }),
    null,
  ],
};

const gradientShader: Shader = { name: "adaptiveMaxGradient", code: gradientCode, bindings: ["read", "read", "write"] };

/** Inputs: the output's gradient and the indices; output: the gradient of an input whose planes have `size`. */
const gradientRow: Operator<SizeAttributes> = {
  name: "adaptiveMaxGradient",
  infer: ([gradient], { size }) => ({ shape: resized(gradient!, size), dtype: "float32" }),
  lower(lowering, { inputs: [gradient, indices], attributes: { size }, shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: gradientShader,
      bindings: [lowering.dense(gradient!), lowering.dense(indices!), output],
      uniforms: [count, ...planesOf(gradient!), ...size],
      grid: gridFor(count),
      work: 4 * count,
    });
    return output;
  },
  backward: ({ inputs: [, indices], gradient }) => [apply(takeRow, [gradient, indices!], {}), null],
};

export const adaptivePooling: readonly Operator[] = [indicesRow, takeRow, gradientRow];

/** Each of `to` outputs is the mean of its even share of `from` inputs, which overlap where it can't be even. */
export function averageTaps(from: number, to: number): Tap[][] {
  return Array.from({ length: to }, (_, at) => {
    const first = Math.floor((at * from) / to);
    const count = Math.ceil(((at + 1) * from) / to) - first;
    return Array.from({ length: count }, (_, tap) => ({ input: first + tap, weight: 1 / count }));
  });
}

function sizesOf(operator: string, input: Tensor, size: AdaptiveSize, spatial: number): number[] {
  const list = typeof size === "object" && size !== null ? size : Array.from({ length: spatial }, () => size);
  const { ndim, shape } = input;
  if (!isFloating(input.dtype) || (ndim !== spatial + 1 && ndim !== spatial + 2))
    throw new OperatorError(
      operator,
      `the input is ${input.dtype}${describeShape(shape)}; expected floats with ${spatial + 1} or ${spatial + 2} dimensions`,
    );
  const sizes = list.map((part, d) => part ?? shape[ndim - spatial + d]!);
  if (sizes.length !== spatial || sizes.some((part) => !Number.isInteger(part) || part < 0))
    throw new OperatorError(operator, `the size is ${JSON.stringify(size)}; expected ${spatial} integers or null`);
  return sizes;
}

function adaptiveAverage(operator: string, input: Tensor, size: AdaptiveSize, spatial: number): Tensor {
  return sizesOf(operator, input, size, spatial).reduce((value, to, d) => {
    const dim = input.ndim - spatial + d;
    return sparseMap(value, dim, `average to ${to}`, (from) => averageTaps(from, to));
  }, input);
}

/** Means of even shares: [N, C, L] or [C, L] to a last dimension of `size`. */
export const adaptiveAvgPool1d = (input: Tensor, size: AdaptiveSize): Tensor =>
  adaptiveAverage("adaptiveAvgPool1d", input, size, 1);

/** Means of even shares: [N, C, H, W] or [C, H, W] to last dimensions of `size`. */
export const adaptiveAvgPool2d = (input: Tensor, size: AdaptiveSize): Tensor =>
  adaptiveAverage("adaptiveAvgPool2d", input, size, 2);

export interface PoolWithIndices {
  readonly output: Tensor;
  /** int32: the index of each maximum in the values of its plane. */
  readonly indices: Tensor;
}

/** The largest values of even shares, with their indices: [N, C, H, W] or [C, H, W] to last dimensions of `size`. */
export function adaptiveMaxPool2dWithIndices(input: Tensor, size: AdaptiveSize): PoolWithIndices {
  const [height = 0, width = 0] = sizesOf("adaptiveMaxPool2d", input, size, 2);
  const planes = input.ndim === 3 ? unsqueeze(input, 0) : input;
  const [inHeight, inWidth] = planesOf(planes);
  if ((inHeight === 0 || inWidth === 0) && height * width > 0)
    throw new OperatorError("adaptiveMaxPool2d", `the input has shape ${describeShape(input.shape)}; expected values`);
  const indices = apply(indicesRow, [planes], { size: [height, width] });
  const output = apply(takeRow, [planes, indices], {});
  return input.ndim === 3 ? { output: squeeze(output, 0), indices: squeeze(indices, 0) } : { output, indices };
}

export const adaptiveMaxPool2d = (input: Tensor, size: AdaptiveSize): Tensor =>
  adaptiveMaxPool2dWithIndices(input, size).output;

/** `adaptiveMaxPool2dWithIndices` of [N, C, L] or [C, L] along the last dimension. */
export function adaptiveMaxPool1dWithIndices(input: Tensor, size: number): PoolWithIndices {
  const { output, indices } = adaptiveMaxPool2dWithIndices(unsqueeze(input, -2), [1, size]);
  return { output: squeeze(output, -2), indices: squeeze(indices, -2) };
}

export const adaptiveMaxPool1d = (input: Tensor, size: number): Tensor =>
  adaptiveMaxPool1dWithIndices(input, size).output;

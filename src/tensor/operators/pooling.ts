import avgPoolCode from "../../../shaders/avgPool.wgsl?raw";
import avgPoolGradientCode from "../../../shaders/avgPoolGradient.wgsl?raw";
import maxPoolGradientCode from "../../../shaders/maxPoolGradient.wgsl?raw";
import disjointGradientCode from "../../../shaders/maxPoolGradientDisjoint.wgsl?raw";
import maxPoolIndicesCode from "../../../shaders/maxPoolIndices.wgsl?raw";
import takeFromPlanesCode from "../../../shaders/takeFromPlanes.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { isFloating } from "../dtype";
import { describeShape, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import type { Operator } from "./table";
import { squeeze, unsqueeze } from "./views";
import { type Pair, pairOf } from "./window";

type Pool = {
  readonly kernel: Pair;
  readonly stride: Pair;
  readonly padding: Pair;
  /** The output's height and width, or the input's in a gradient's row. */
  readonly size: Pair;
};

type MaxPool = Pool & { readonly dilation: Pair };

type AvgPool = Pool & {
  readonly countIncludePad: boolean;
  /** 0: each window's own size. */
  readonly divisor: number;
};

const workgroupSize = 64;
const gridFor = (count: number) => spread(Math.ceil(count / workgroupSize));
const planesOf = ({ shape }: { readonly shape: Shape }): Pair => [shape[2] ?? 0, shape[3] ?? 0];
const resized = ({ shape }: { readonly shape: Shape }, [height, width]: Pair) => [...shape.slice(0, 2), height, width];
/** As WGSL's vec2i: horizontal first. */
const vector = ([vertical, horizontal]: Pair) => [horizontal, vertical];
const area = ([height, width]: Pair) => height * width;

const indicesShader: Shader = {
  name: "maxPoolIndices",
  code: maxPoolIndicesCode,
  bindings: ["read", "write"],
};

/** Input [N, C, H, W]; output int32 [N, C, H', W']: the index in the H W values of a plane of each window's largest. */
const indicesRow: Operator<MaxPool> = {
  name: "maxPoolIndices",
  infer: ([input], { size }) => ({ shape: resized(input!, size), dtype: "int32" }),
  lower(lowering, { inputs: [input], attributes: { kernel, stride, padding, dilation, size }, shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: indicesShader,
      bindings: [lowering.dense(input!), output],
      uniforms: [
        ...[count, area(size), size[1], ...planesOf(input!), ...kernel, 0],
        ...[stride, padding, dilation].flatMap(vector),
      ],
      grid: gridFor(count),
      work: count * area(kernel),
    });
    return output;
  },
};

const takeShader: Shader = { name: "takeFromPlanes", code: takeFromPlanesCode, bindings: ["read", "read", "write"] };

/** Inputs: input [N, C, H, W] and indices as `maxPoolIndices` gives them; output: the values there. */
const takeRow: Operator<MaxPool> = {
  name: "maxPool",
  infer: ([, indices]) => ({ shape: indices!.shape, dtype: "float32" }),
  lower(lowering, { inputs: [input, indices], shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: takeShader,
      bindings: [lowering.dense(input!), lowering.dense(indices!), output],
      uniforms: [count, area(planesOf({ shape })), area(planesOf(input!))],
      grid: gridFor(count),
      work: 3 * count,
    });
    return output;
  },
  backward: ({ inputs: [input, indices], gradient, attributes }) => [
    apply(maxPoolGradientRow, [gradient, indices!], { ...attributes, size: planesOf(input!) }),
    null,
  ],
};

const maxPoolGradientShader: Shader = {
  name: "maxPoolGradient",
  code: maxPoolGradientCode,
  bindings: ["read", "read", "write"],
};

const disjointGradientShader: Shader = {
  ...maxPoolGradientShader,
  name: "maxPoolGradientDisjoint",
  code: disjointGradientCode,
};

/** Inputs: the output's gradient and the indices; output: the gradient of an input whose planes have `size`. */
const maxPoolGradientRow: Operator<MaxPool> = {
  name: "maxPoolGradient",
  infer: ([gradient], { size }) => ({ shape: resized(gradient!, size), dtype: "float32" }),
  lower(lowering, { inputs: [gradient, indices], attributes, shape }) {
    const { kernel, stride, padding, dilation, size } = attributes;
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    const outPlane = planesOf(gradient!);
    const isDisjoint = [0, 1].every((d) => stride[d]! >= kernel[d]! && padding[d] === 0 && dilation[d] === 1);
    if (isDisjoint) {
      const [rows, columns] = [Math.ceil(size[0] / stride[0]), Math.ceil(size[1] / stride[1])];
      const parts = (count / area(size)) * rows * columns;
      lowering.dispatch({
        shader: disjointGradientShader,
        bindings: [lowering.dense(gradient!), lowering.dense(indices!), output],
        uniforms: [parts, rows * columns, columns, area(outPlane), ...outPlane, ...size, ...vector(stride)],
        grid: gridFor(parts),
        work: 2 * count,
      });
      return output;
    }
    lowering.dispatch({
      shader: maxPoolGradientShader,
      bindings: [lowering.dense(gradient!), lowering.dense(indices!), output],
      uniforms: [
        ...[count, area(outPlane), ...outPlane, area(size), size[1], ...kernel],
        ...[stride, padding, dilation].flatMap(vector),
      ],
      grid: gridFor(count),
      work: count * (2 + area(kernel)),
    });
    return output;
  },
  backward: ({ inputs: [outputGradient, indices], gradient, attributes }) => [
    apply(takeRow, [gradient, indices!], { ...attributes, size: planesOf(outputGradient!) }),
    null,
  ],
};

const avgPoolShader: Shader = { name: "avgPool", code: avgPoolCode, bindings: ["read", "write"] };

/** Input [N, C, H, W]; output [N, C, H', W']. */
const avgPoolRow: Operator<AvgPool> = {
  name: "avgPool",
  infer: ([input], { size }) => ({ shape: resized(input!, size), dtype: "float32" }),
  lower(lowering, { inputs: [input], attributes, shape }) {
    const { kernel, stride, padding, size, countIncludePad, divisor } = attributes;
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: avgPoolShader,
      bindings: [lowering.dense(input!), output],
      uniforms: [
        ...[count, area(size), size[1], { f32: divisor }, ...planesOf(input!), countIncludePad ? 1 : 0, 0],
        ...[kernel, stride, padding].flatMap(vector),
      ],
      grid: gridFor(count),
      work: count * area(kernel),
    });
    return output;
  },
  backward: ({ inputs: [input], gradient, attributes }) => [
    apply(avgPoolGradientRow, [gradient], { ...attributes, size: planesOf(input!) }),
  ],
};

const avgPoolGradientShader: Shader = {
  name: "avgPoolGradient",
  code: avgPoolGradientCode,
  bindings: ["read", "write"],
};

/** Input: the output's gradient; output: the gradient of an input whose planes have `size`. */
const avgPoolGradientRow: Operator<AvgPool> = {
  name: "avgPoolGradient",
  infer: ([gradient], { size }) => ({ shape: resized(gradient!, size), dtype: "float32" }),
  lower(lowering, { inputs: [gradient], attributes, shape }) {
    const { kernel, stride, padding, size, countIncludePad, divisor } = attributes;
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    const outPlane = planesOf(gradient!);
    lowering.dispatch({
      shader: avgPoolGradientShader,
      bindings: [lowering.dense(gradient!), output],
      uniforms: [
        ...[count, area(outPlane), ...outPlane, ...size, { f32: divisor }, countIncludePad ? 1 : 0],
        ...[kernel, stride, padding].flatMap(vector),
      ],
      grid: gridFor(count),
      work: count * (2 + area(kernel)),
    });
    return output;
  },
  backward: ({ inputs: [outputGradient], gradient, attributes }) => [
    apply(avgPoolRow, [gradient], { ...attributes, size: planesOf(outputGradient!) }),
  ],
};

export const pooling: readonly Operator[] = [indicesRow, takeRow, maxPoolGradientRow, avgPoolRow, avgPoolGradientRow];

export interface MaxPool2dOptions {
  /** Default: the kernel's size. */
  readonly stride?: number | readonly number[] | null;
  /** Rows and columns around the input that no window's maximum comes from. Default: 0. */
  readonly padding?: number | readonly number[];
  /** Default: 1. */
  readonly dilation?: number | readonly number[];
  /** Whether a last window may hang over the end. Default: false. */
  readonly ceilMode?: boolean;
}

/**
 * torch.nn.functional.max_pool2d. A single number stands for both dimensions.
 * @param input floats [N, C, H, W] or [C, H, W].
 * @throws OperatorError for a shape or a window that doesn't fit.
 */
export function maxPool2d(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: MaxPool2dOptions = {},
): Tensor {
  return maxPool2dWithIndices(input, kernelSize, options).output;
}

/** `maxPool2d` with the int32 index of each maximum in the H W values of its plane. */
export function maxPool2dWithIndices(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: MaxPool2dOptions = {},
): { readonly output: Tensor; readonly indices: Tensor } {
  const operator = "maxPool2d";
  if (input.ndim === 3) {
    const { output, indices } = maxPool2dWithIndices(unsqueeze(input, 0), kernelSize, options);
    return { output: squeeze(output, 0), indices: squeeze(indices, 0) };
  }
  const dilation = pairOf(operator, "dilation", options.dilation ?? 1, 1);
  const pool = poolOf(operator, input, kernelSize, options, dilation);
  const indices = apply(indicesRow, [input], { ...pool, dilation });
  return { output: apply(takeRow, [input, indices], { ...pool, dilation }), indices };
}

export interface AvgPool2dOptions {
  /** Default: the kernel's size. */
  readonly stride?: number | readonly number[] | null;
  /** Zeros around the input. Default: 0. */
  readonly padding?: number | readonly number[];
  /** Whether a last window may hang over the end. Default: false. */
  readonly ceilMode?: boolean;
  /** Whether the padding's zeros count in the average. Default: true. */
  readonly countIncludePad?: boolean;
  /** Divides each window's sum, instead of the window's size. */
  readonly divisorOverride?: number | null;
}

/**
 * torch.nn.functional.avg_pool2d. A single number stands for both dimensions.
 * @param input floats [N, C, H, W] or [C, H, W].
 * @throws OperatorError for a shape or a window that doesn't fit.
 */
export function avgPool2d(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: AvgPool2dOptions = {},
): Tensor {
  if (input.ndim === 3) return squeeze(avgPool2d(unsqueeze(input, 0), kernelSize, options), 0);
  const { countIncludePad = true, divisorOverride } = options;
  if (divisorOverride === 0) throw new OperatorError("avgPool2d", "divisorOverride is 0; expected another number");
  const pool = poolOf("avgPool2d", input, kernelSize, options, [1, 1]);
  return apply(avgPoolRow, [input], { ...pool, countIncludePad, divisor: divisorOverride ?? 0 });
}

function poolOf(
  operator: string,
  input: Tensor,
  kernelSize: number | readonly number[],
  options: MaxPool2dOptions | AvgPool2dOptions,
  dilation: Pair,
): Pool {
  if (input.ndim !== 4 || !isFloating(input.dtype))
    throw new OperatorError(
      operator,
      `the input is ${input.dtype}${describeShape(input.shape)}; expected floats [N, C, H, W] or [C, H, W]`,
    );
  const kernel = pairOf(operator, "kernelSize", kernelSize, 1);
  const given = options.stride ?? kernel;
  const stride = pairOf(operator, "stride", typeof given === "number" || given.length > 0 ? given : kernel, 1);
  const padding = pairOf(operator, "padding", options.padding ?? 0, 0);
  const extent: Pair = [dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1];
  if (padding[0] > extent[0] / 2 || padding[1] > extent[1] / 2)
    throw new OperatorError(
      operator,
      `padding is [${padding.join(", ")}]; expected at most half the window, which spans [${extent.join(", ")}]`,
    );
  const plane = planesOf(input);
  const ceilMode = options.ceilMode ?? false;
  const length = (d: 0 | 1) => pooledLength(operator, plane[d], extent[d], stride[d], padding[d], ceilMode);
  return { kernel, stride, padding, size: [length(0), length(1)] };
}

/** PyTorch's pooling_output_shape: in ceil mode a window may hang over the end, but not begin behind the input. */
function pooledLength(
  operator: string,
  length: number,
  extent: number,
  stride: number,
  padding: number,
  ceilMode: boolean,
): number {
  const steps = (length + 2 * padding - extent) / stride;
  let count = (ceilMode ? Math.ceil(steps) : Math.floor(steps)) + 1;
  if (ceilMode && (count - 1) * stride >= length + padding) count -= 1;
  if (count < 1)
    throw new OperatorError(
      operator,
      `the window spans ${extent} of an input of ${length} with ${padding} of padding on each side; expected it to fit`,
    );
  return count;
}

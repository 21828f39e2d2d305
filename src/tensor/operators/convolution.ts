import weightGradientCode from "../../../shaders/convolutionWeightGradient.wgsl?raw";
import convolveCode from "../../../shaders/convolve.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { isAutocastEnabled } from "../autocast";
import { isFloating } from "../dtype";
import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { sum, sumParts } from "./reduction";
import type { Operator } from "./table";
import { squeeze, unsqueeze } from "./views";
import { type Pair, pairOf, windowCount } from "./window";

export type WindowAttributes = {
  readonly stride: Pair;
  /** Rows of zeros above and columns of zeros before the input; what lies behind it follows from the output's size. */
  readonly padding: Pair;
  readonly dilation: Pair;
  readonly groups: number;
};

type ConvolveAttributes = WindowAttributes & {
  /** Whether this is the transpose: what carries an output's gradient to the input. */
  readonly transposed: boolean;
  readonly outputSize: Pair;
};

const convolveFields = /* wgsl */ `
  // Output values of one channel, over all images.
  pixels: u32,
  outSize: u32,
  outWidth: u32,
  inSize: u32,
  inHeight: i32,
  inWidth: i32,
  groups: u32,
  outChannels: u32,
  inChannels: u32,
  kernelHeight: i32,
  kernelWidth: i32,
  weightGroupStride: u32,
  weightOutStride: u32,
  weightInStride: u32,
  hasBias: u32,
  workgroups: u32,
  scale: vec2i,
  shift: vec2i,
  step: vec2i,
  divide: vec2i,`;

/** Output pixels and channels of a workgroup of convolve.wgsl. */
const convolvePixels = 512;
const convolveChannels = 8;

/**
 * Inputs: input [N, C, H, W], weight, and optionally bias [K]; output [N, K, *outputSize]. The weight is
 * [K, C / groups, kH, kW], or [C, K / groups, kH, kW] where transposed.
 */
const convolveRow: Operator<ConvolveAttributes> = {
  name: "convolve",
  infer([input, weight], { transposed, groups, outputSize }) {
    const outChannels = transposed ? weight!.shape[1]! * groups : weight!.shape[0]!;
    return { shape: [input!.shape[0]!, outChannels, ...outputSize], dtype: "float32" };
  },
  lower(lowering, { inputs: [input, weight, bias], attributes, shape }) {
    const { stride, padding, dilation, groups, transposed } = attributes;
    const [images = 0, channels = 0, outHeight = 0, outWidth = 0] = shape;
    const [, allInChannels = 0, inHeight = 0, inWidth = 0] = input!.shape;
    const [, perGroup = 0, kernelHeight = 0, kernelWidth = 0] = weight!.shape;
    const kernelSize = kernelHeight * kernelWidth;
    const outChannels = channels / groups;
    const inChannels = allInChannels / groups;
    const outSize = outHeight * outWidth;
    const pixels = images * outSize;
    const workgroups = Math.ceil(pixels / convolvePixels) * Math.ceil(outChannels / convolveChannels) * groups;
    if (workgroups === 0) return lowering.result();
    const [outStride, inStride] = transposed
      ? [kernelSize, perGroup * kernelSize]
      : [perGroup * kernelSize, kernelSize];
    const signed = (pair: Pair, sign: number) => [{ i32: sign * pair[1] }, { i32: sign * pair[0] }];
    const one: Pair = [1, 1];
    const denseWeight = lowering.dense(weight!);
    const type = "f32";
    return lowering.produce({
      name: transposed ? "transposed convolution" : "convolution",
      fields: convolveFields,
      code: convolveCode,
      inputs: [
        { name: "input", type, value: lowering.dense(input!) },
        { name: "weight", type, value: denseWeight },
        { name: "bias", type, value: bias ? lowering.dense(bias) : denseWeight },
      ],
      uniforms: [
        ...[pixels, outSize, outWidth, inHeight * inWidth, inHeight, inWidth],
        ...[groups, outChannels, inChannels, kernelHeight, kernelWidth],
        ...[outChannels * inChannels * kernelSize, outStride, inStride, bias ? 1 : 0, workgroups],
        ...signed(transposed ? one : stride, 1),
        ...signed(padding, transposed ? 1 : -1),
        ...signed(dilation, transposed ? -1 : 1),
        ...signed(transposed ? stride : one, 1),
      ],
      grid: spread(workgroups),
      work: pixels * channels * inChannels * kernelSize,
    });
  },
  backward({ inputs: [input, weight, bias], gradient, attributes, needs }) {
    const { transposed } = attributes;
    const [, , height = 0, width = 0] = input!.shape;
    const backwards = { ...attributes, transposed: !transposed, outputSize: [height, width] as const };
    return [
      needs[0] ? apply(convolveRow, [gradient, weight!], backwards) : null,
      needs[1]
        ? weightGradient(transposed ? input! : gradient, transposed ? gradient : input!, weight!, attributes)
        : null,
      ...(bias ? [needs[2] ? sum(gradient, [0, 2, 3]) : null] : []),
    ];
  },
};

type WeightGradientAttributes = WindowAttributes & { readonly kernel: Pair };

const weightGradientShader: Shader = {
  name: "convolutionWeightGradient",
  code: weightGradientCode,
  bindings: ["read", "read", "write"],
};

/** Channels and taps of a workgroup of convolutionWeightGradient.wgsl, and its partial gradients for each slice. */
const weightGradientTile = 8;
const partsPerSlice = 32;
/** Slices are cut until there are so many workgroups, or so few pixels left for each invocation. */
const enoughWorkgroups = 128;
const fewestPixels = 16;

/** Inputs: the convolution's output gradient [N, K, H', W'] and input [N, C, H, W]; output [K, C / groups, kH, kW]. */
const weightGradientRow: Operator<WeightGradientAttributes> = {
  name: "convolutionWeightGradient",
  infer: ([outputGradient, input], { kernel, groups }) => ({
    shape: [outputGradient!.shape[1]!, input!.shape[1]! / groups, ...kernel],
    dtype: "float32",
  }),
  lower(lowering, { inputs: [outputGradient, input], attributes, shape }) {
    const { stride, padding, dilation, groups, kernel } = attributes;
    const [images = 0, channels = 0, outHeight = 0, outWidth = 0] = outputGradient!.shape;
    const [, , inHeight = 0, inWidth = 0] = input!.shape;
    const [, inChannels = 0] = shape;
    const pixels = images * outHeight * outWidth;
    const outChannels = channels / groups;
    const kernelSize = kernel[0] * kernel[1];
    const tiles =
      groups * Math.ceil(outChannels / weightGradientTile) * Math.ceil((inChannels * kernelSize) / weightGradientTile);
    if (tiles === 0) return lowering.result();
    const mostSlices = Math.ceil(pixels / (partsPerSlice * fewestPixels));
    const slices = Math.max(1, Math.min(mostSlices, Math.ceil(enoughWorkgroups / tiles)));
    const parts = slices * partsPerSlice;
    const partial = lowering.allocate([parts, ...shape], "float32");
    const signed = (pair: Pair, sign: number) => [{ i32: sign * pair[1] }, { i32: sign * pair[0] }];
    const workgroups = slices * tiles;
    lowering.dispatch({
      shader: weightGradientShader,
      bindings: [lowering.dense(outputGradient!), lowering.dense(input!), partial],
      uniforms: [
        ...[pixels, Math.ceil(pixels / slices), outHeight * outWidth, outWidth],
        ...[inHeight * inWidth, inHeight, inWidth, groups, outChannels, inChannels, kernelSize, kernel[1]],
        ...signed(stride, 1),
        ...signed(padding, -1),
        ...signed(dilation, 1),
        workgroups,
      ],
      grid: spread(workgroups),
      work: pixels * channels * inChannels * kernelSize,
    });
    return sumParts(lowering, partial);
  },
  backward({ inputs: [outputGradient, input], gradient, attributes: { kernel: _, ...window }, needs }) {
    const sizeOfPlane = ({ shape: [, , height = 0, width = 0] }: Tensor): Pair => [height, width];
    const forward = { ...window, transposed: false, outputSize: sizeOfPlane(outputGradient!) };
    const backwards = { ...window, transposed: true, outputSize: sizeOfPlane(input!) };
    return [
      needs[0] ? apply(convolveRow, [input!, gradient], forward) : null,
      needs[1] ? apply(convolveRow, [outputGradient!, gradient], backwards) : null,
    ];
  },
};

function weightGradient(
  outputGradient: Tensor,
  input: Tensor,
  { shape: [, , height = 0, width = 0] }: Tensor,
  { stride, padding, dilation, groups }: WindowAttributes,
): Tensor {
  const attributes = { stride, padding, dilation, groups, kernel: [height, width] as const };
  return apply(weightGradientRow, [outputGradient, input], attributes);
}

export const convolution: readonly Operator[] = [convolveRow, weightGradientRow];

/**
 * The transpose of a convolution: carries [N, C, H, W] to planes of `outputSize`.
 * @param weight [C, K / groups, kH, kW].
 */
export const convolveTransposed = (
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  window: WindowAttributes,
  outputSize: Pair,
): Tensor =>
  apply(convolveRow, bias ? [input, weight, bias] : [input, weight], { ...window, transposed: true, outputSize });

export interface Conv2dOptions {
  /** Default: 1. */
  readonly stride?: number | readonly number[];
  /** Zeros around the input, "same" for an output of the input's size (stride 1), "valid" for none. Default: 0. */
  readonly padding?: number | readonly number[] | "same" | "valid";
  /** Default: 1. */
  readonly dilation?: number | readonly number[];
  /** Channels are split into so many groups that don't see each other. Default: 1. */
  readonly groups?: number;
}

/**
 * torch.nn.functional.conv2d. A single number in `options` stands for both dimensions.
 * @param input floats [N, C, H, W] or [C, H, W].
 * @param weight floats [K, C / groups, kH, kW].
 * @param bias floats [K].
 * @returns [N, K, H', W'] with H' = floor((H + 2 padding - dilation (kH - 1) - 1) / stride) + 1.
 * @throws OperatorError for shapes that don't go together.
 */
export function conv2d(input: Tensor, weight: Tensor, bias?: Tensor | null, options: Conv2dOptions = {}): Tensor {
  const { groups = 1 } = options;
  if (input.ndim === 3) return squeeze(conv2d(unsqueeze(input, 0), weight, bias, options), 0);
  checkConv2d(input, weight, bias ?? null, groups);
  const stride = pairOf("conv2d", "stride", options.stride ?? 1, 1);
  const dilation = pairOf("conv2d", "dilation", options.dilation ?? 1, 1);
  const [, , height = 0, width = 0] = input.shape;
  const [, , kernelHeight = 0, kernelWidth = 0] = weight.shape;
  const reach: Pair = [dilation[0] * (kernelHeight - 1), dilation[1] * (kernelWidth - 1)];
  const { before, total } = paddingOf(options.padding ?? 0, reach, stride);
  const outputSize: Pair = [
    windowCount("conv2d", height + total[0], reach[0] + 1, stride[0]),
    windowCount("conv2d", width + total[1], reach[1] + 1, stride[1]),
  ];
  const attributes = { stride, padding: before, dilation, groups, transposed: false, outputSize };
  return apply(convolveRow, bias ? [input, weight, bias] : [input, weight], attributes);
}

function checkConv2d(input: Tensor, weight: Tensor, bias: Tensor | null, groups: number): void {
  const fail = (problem: string) => {
    throw new OperatorError("conv2d", problem);
  };
  for (const [what, tensor] of Object.entries({ input, weight, bias }))
    if (tensor && !isFloating(tensor.dtype)) fail(`the ${what} is ${tensor.dtype}; expected a floating-point type`);
  if (input.dtype !== weight.dtype && !isAutocastEnabled())
    fail(`the input is ${input.dtype} and the weight ${weight.dtype}; expected one type. Use to(), or autocast`);
  if (input.ndim !== 4) fail(`the input has shape ${describeShape(input.shape)}; expected [N, C, H, W] or [C, H, W]`);
  if (weight.ndim !== 4) fail(`the weight has shape ${describeShape(weight.shape)}; expected [K, C / groups, kH, kW]`);
  const [, channels = 0] = input.shape;
  const [outChannels = 0, perGroup = 0, height = 0, width = 0] = weight.shape;
  if (!Number.isInteger(groups) || groups < 1) fail(`groups is ${groups}; expected an integer of at least 1`);
  if (height === 0 || width === 0) fail(`the weight has shape ${describeShape(weight.shape)}; expected a window`);
  if (channels !== perGroup * groups || outChannels % groups !== 0)
    fail(
      `the input has ${channels} channels, the weight shape ${describeShape(weight.shape)} and groups is ${groups}; ` +
        `expected a weight of [a multiple of groups, input channels / groups, kH, kW]`,
    );
  if (bias && (bias.ndim !== 1 || bias.shape[0] !== outChannels))
    fail(`the bias has shape ${describeShape(bias.shape)}; expected [${outChannels}]`);
}

/** Zeros before the input, and before and behind it together. "same" puts an odd one behind, as PyTorch does. */
function paddingOf(padding: number | readonly number[] | "same" | "valid", reach: Pair, stride: Pair) {
  if (padding === "valid") return { before: [0, 0] as const, total: [0, 0] as const };
  if (padding === "same") {
    if (stride[0] !== 1 || stride[1] !== 1)
      throw new OperatorError(
        "conv2d",
        `padding is "same" and stride [${stride.join(", ")}]; expected stride 1 with it`,
      );
    return { before: [Math.floor(reach[0] / 2), Math.floor(reach[1] / 2)] as const, total: reach };
  }
  const before = pairOf("conv2d", "padding", padding, 0);
  return { before, total: [2 * before[0], 2 * before[1]] as const };
}

import { isFloating } from "../dtype";
import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { type Conv2dOptions, conv2d, convolveTransposed } from "./convolution";
import { squeeze, unsqueeze } from "./views";
import { type Pair, pairOf, single } from "./window";

export type Conv1dOptions = Conv2dOptions;

const inRow = (operator: string, what: string, value: number | readonly number[], ofHeight: number): Pair => [
  ofHeight,
  single(operator, what, value),
];

/**
 * torch.nn.functional.conv1d.
 * @param input floats [N, C, L] or [C, L]; weight [K, C / groups, k]; bias [K].
 */
export function conv1d(input: Tensor, weight: Tensor, bias?: Tensor | null, options: Conv1dOptions = {}): Tensor {
  checkRank("conv1d", input, weight, 1);
  const { stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
  const result = conv2d(unsqueeze(input, -2), unsqueeze(weight, -2), bias, {
    stride: inRow("conv1d", "stride", stride, 1),
    padding: padding === "same" || padding === "valid" ? padding : inRow("conv1d", "padding", padding, 0),
    dilation: inRow("conv1d", "dilation", dilation, 1),
    groups,
  });
  return squeeze(result, -2);
}

export interface ConvTransposeOptions {
  /** Default: 1. */
  readonly stride?: number | readonly number[];
  /** What is taken away on each side of the result. Default: 0. */
  readonly padding?: number | readonly number[];
  /** What is added at the result's end. Default: 0. */
  readonly outputPadding?: number | readonly number[];
  /** Default: 1. */
  readonly groups?: number;
  /** Default: 1. */
  readonly dilation?: number | readonly number[];
}

/**
 * torch.nn.functional.conv_transpose2d.
 * @param input floats [N, C, H, W] or [C, H, W]; weight [C, K / groups, kH, kW]; bias [K].
 * @returns [N, K, H', W'] with H' = (H - 1) stride - 2 padding + dilation (kH - 1) + outputPadding + 1.
 */
export function convTranspose2d(
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null = null,
  options: ConvTransposeOptions = {},
): Tensor {
  const operator = "convTranspose2d";
  checkRank(operator, input, weight, 2);
  if (input.ndim === 3) return squeeze(convTranspose2d(unsqueeze(input, 0), weight, bias, options), 0);
  const { groups = 1 } = options;
  const stride = pairOf(operator, "stride", options.stride ?? 1, 1);
  const padding = pairOf(operator, "padding", options.padding ?? 0, 0);
  const outputPadding = pairOf(operator, "outputPadding", options.outputPadding ?? 0, 0);
  const dilation = pairOf(operator, "dilation", options.dilation ?? 1, 1);
  const [, channels = 0, height = 0, width = 0] = input.shape;
  const [inChannels = 0, perGroup = 0, kernelHeight = 0, kernelWidth = 0] = weight.shape;
  if (channels !== inChannels || !Number.isInteger(groups) || groups < 1 || channels % groups !== 0)
    throw new OperatorError(
      operator,
      `the input has ${channels} channels, the weight shape ${describeShape(weight.shape)} and groups is ${groups}; ` +
        "expected a weight of [input channels, K / groups, kH, kW] and groups that divide them",
    );
  if (bias && (bias.ndim !== 1 || bias.shape[0] !== perGroup * groups))
    throw new OperatorError(
      operator,
      `the bias has shape ${describeShape(bias.shape)}; expected [${perGroup * groups}]`,
    );
  const length = (d: 0 | 1, size: number, kernel: number) => {
    if (outputPadding[d] >= Math.max(stride[d], dilation[d]))
      throw new OperatorError(
        operator,
        `outputPadding is [${outputPadding.join(", ")}]; expected less than the stride or the dilation`,
      );
    return (size - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel - 1) + outputPadding[d] + 1;
  };
  const outputSize: Pair = [length(0, height, kernelHeight), length(1, width, kernelWidth)];
  if (outputSize.some((size) => size < 1))
    throw new OperatorError(operator, `the result would have the size [${outputSize.join(", ")}]; expected at least 1`);
  return convolveTransposed(input, weight, bias, { stride, padding, dilation, groups }, outputSize);
}

/**
 * torch.nn.functional.conv_transpose1d.
 * @param input floats [N, C, L] or [C, L]; weight [C, K / groups, k]; bias [K].
 */
export function convTranspose1d(
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null = null,
  options: ConvTransposeOptions = {},
): Tensor {
  const operator = "convTranspose1d";
  checkRank(operator, input, weight, 1);
  const result = convTranspose2d(unsqueeze(input, -2), unsqueeze(weight, -2), bias, {
    stride: inRow(operator, "stride", options.stride ?? 1, 1),
    padding: inRow(operator, "padding", options.padding ?? 0, 0),
    outputPadding: inRow(operator, "outputPadding", options.outputPadding ?? 0, 0),
    dilation: inRow(operator, "dilation", options.dilation ?? 1, 1),
    groups: options.groups ?? 1,
  });
  return squeeze(result, -2);
}

function checkRank(operator: string, input: Tensor, weight: Tensor, spatial: number): void {
  for (const [what, tensor, ranks] of [
    ["input", input, [spatial + 1, spatial + 2]],
    ["weight", weight, [spatial + 2]],
  ] as const)
    if (!ranks.includes(tensor.ndim) || !isFloating(tensor.dtype))
      throw new OperatorError(
        operator,
        `the ${what} is ${tensor.dtype}${describeShape(tensor.shape)}; expected floats with ${ranks.join(" or ")} dimensions`,
      );
}

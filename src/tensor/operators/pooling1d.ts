import type { Tensor } from "../tensor";
import type { PoolWithIndices } from "./adaptivePooling";
import { type AvgPool2dOptions, avgPool2d, type MaxPool2dOptions, maxPool2dWithIndices } from "./pooling";
import { squeeze, unsqueeze } from "./views";
import { single } from "./window";

export type MaxPool1dOptions = MaxPool2dOptions;
export type AvgPool1dOptions = Omit<AvgPool2dOptions, "divisorOverride">;

const height = (operator: string, what: string, value: number | readonly number[], ofHeight: number) => [
  ofHeight,
  single(operator, what, value),
];

/** What pools in one direction have in common with those of planes that are one row high. */
function flattened(
  operator: string,
  kernelSize: number | readonly number[],
  { stride, padding = 0, ceilMode = false }: MaxPool2dOptions,
) {
  const kernel = height(operator, "kernelSize", kernelSize, 1);
  const given = stride ?? kernelSize;
  const steps = typeof given === "number" || given.length > 0 ? given : kernelSize;
  return {
    kernel,
    options: {
      stride: height(operator, "stride", steps, 1),
      padding: height(operator, "padding", padding, 0),
      ceilMode,
    },
  };
}

/** torch.nn.functional.max_pool1d of [N, C, L] or [C, L]. */
export const maxPool1d = (input: Tensor, kernelSize: number | readonly number[], options: MaxPool1dOptions = {}) =>
  maxPool1dWithIndices(input, kernelSize, options).output;

/** `maxPool1d` with the int32 index of each maximum in its row. */
export function maxPool1dWithIndices(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: MaxPool1dOptions = {},
): PoolWithIndices {
  const { kernel, options: shared } = flattened("maxPool1d", kernelSize, options);
  const dilation = height("maxPool1d", "dilation", options.dilation ?? 1, 1);
  const { output, indices } = maxPool2dWithIndices(unsqueeze(input, -2), kernel, { ...shared, dilation });
  return { output: squeeze(output, -2), indices: squeeze(indices, -2) };
}

/** torch.nn.functional.avg_pool1d of [N, C, L] or [C, L]. */
export function avgPool1d(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: AvgPool1dOptions = {},
): Tensor {
  const { kernel, options: shared } = flattened("avgPool1d", kernelSize, options);
  const { countIncludePad = true } = options;
  return squeeze(avgPool2d(unsqueeze(input, -2), kernel, { ...shared, countIncludePad }), -2);
}

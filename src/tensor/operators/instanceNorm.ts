import { noGrad } from "../apply";
import { autocasting } from "../autocast";
import { describeShape, OperatorError, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { add, mul, rsqrt, sub } from "./elementwise";
import { copy_ } from "./inPlace";
import { type AffineOptions, batchNorm, groupNorm } from "./normalization";
import { mean, variance } from "./reduction";
import { reshape } from "./views";

export interface InstanceNormOptions extends AffineOptions {
  /** Whether each image's own moments are used, and not the running ones. Default: true. */
  readonly useInputStats?: boolean;
  /** The part of the images' mean moments in the new running ones. Default: 0.1. */
  readonly momentum?: number;
}

/**
 * torch.nn.functional.instance_norm: each channel of each image is normalised by itself.
 * @param input floats [N, C, ...].
 * @param runningMean [C]; moved towards the images' mean, in place, where their own moments are used.
 * @param runningVar [C], likewise; it takes the unbiased variances.
 */
export const instanceNorm = autocasting(
  "instanceNorm",
  (
    input: Tensor,
    runningMean: Tensor | null = null,
    runningVar: Tensor | null = null,
    { useInputStats = true, momentum = 0.1, weight = null, bias = null, eps = 1e-5 }: InstanceNormOptions = {},
  ): Tensor => {
    if (!useInputStats) return batchNorm(input, runningMean, runningVar, { weight, bias, eps });
    const [images = 0, channels = 0] = input.shape;
    const length = sizeOf(input.shape.slice(2));
    if (input.ndim < 2 || length === 1)
      throw new OperatorError(
        "instanceNorm",
        `the input has shape ${describeShape(input.shape)}; expected [N, C, ...] with more than one value for each channel`,
      );
    if (runningMean || runningVar)
      noGrad(() => {
        const rows = reshape(input.detach(), [images, channels, length]);
        const move = (running: Tensor, moment: Tensor) =>
          copy_(running, add(running, mul(sub(mean(moment, 0), running), momentum)));
        if (runningMean) move(runningMean, mean(rows, 2));
        if (runningVar) move(runningVar, variance(rows, 2));
      });
    return groupNorm(input, channels, { weight, bias, eps });
  },
);

/**
 * torch.nn.functional.rms_norm: x / sqrt(mean(x²) + eps) over the last dimensions, times the weight.
 * @param normalizedShape the sizes of those dimensions, which are the weight's shape.
 * @param eps default: float32's 2^-23.
 */
export const rmsNorm = autocasting(
  "rmsNorm",
  (
    input: Tensor,
    normalizedShape: readonly number[],
    weight: Tensor | null = null,
    eps: number | null = null,
  ): Tensor => {
    const lead = input.ndim - normalizedShape.length;
    for (const [what, shape] of [
      ["input", input.shape.slice(Math.max(0, lead))],
      ["weight", weight?.shape],
    ] as const)
      if (shape && describeShape(shape) !== describeShape(normalizedShape))
        throw new OperatorError(
          "rmsNorm",
          `the ${what} ends in ${describeShape(shape)}; expected ${describeShape(normalizedShape)}`,
        );
    const dims = normalizedShape.map((_, d) => lead + d);
    const normalized = mul(input, rsqrt(add(mean(mul(input, input), dims, true), eps ?? 2 ** -23)));
    return weight ? mul(normalized, weight) : normalized;
  },
);

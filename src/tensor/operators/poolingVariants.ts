import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { zeros } from "./creation";
import { mul, pow } from "./elementwise";
import { scatter } from "./indexing";
import { avgPool2d } from "./pooling";
import { reshape, squeeze, unsqueeze } from "./views";

type Size = number | readonly [number, number];
const pair = (size: Size): readonly [number, number] => (typeof size === "number" ? [size, size] : size);

export interface PowerPoolOptions<Kernel> {
  /** Default: kernelSize. */
  readonly stride?: Kernel;
  /** Default: false. */
  readonly ceilMode?: boolean;
}

/**
 * torch.nn.functional.lp_pool2d of [N, C, H, W] or [C, H, W]: (sum over the window of x^p)^(1/p). With ceilMode a window that sticks out is weighed as PyTorch weighs it: as its mean times the whole.
 */
export function lpPool2d(
  input: Tensor,
  normType: number,
  kernelSize: Size,
  { stride = kernelSize, ceilMode = false }: PowerPoolOptions<Size> = {},
): Tensor {
  const [rows, columns] = pair(kernelSize);
  const means = avgPool2d(pow(input, normType), [rows, columns], { stride: pair(stride), ceilMode });
  return pow(mul(means, rows * columns), 1 / normType);
}

/** torch.nn.functional.lp_pool1d of [N, C, L] or [C, L]. */
export const lpPool1d = (
  input: Tensor,
  normType: number,
  kernelSize: number,
  { stride = kernelSize, ceilMode = false }: PowerPoolOptions<number> = {},
): Tensor => squeeze(lpPool2d(unsqueeze(input, -2), normType, [1, kernelSize], { stride: [1, stride], ceilMode }), -2);

export interface MaxUnpoolOptions<Kernel> {
  /** Default: kernelSize. */
  readonly stride?: Kernel;
  /** Default: 0. */
  readonly padding?: Kernel;
  /** The output's height and width, where several give the input's. Default: the smallest. */
  readonly outputSize?: readonly number[];
}

/**
 * torch.nn.functional.max_unpool2d of [N, C, H, W] or [C, H, W]: zeros, and each value at its index (int32, into the
 * output's plane), as `maxPool2dWithIndices` gives them.
 */
export function maxUnpool2d(
  input: Tensor,
  indices: Tensor,
  kernelSize: Size,
  { stride = kernelSize, padding = 0, outputSize }: MaxUnpoolOptions<Size> = {},
): Tensor {
  if (input.shape.join() !== indices.shape.join())
    throw new OperatorError(
      "maxUnpool2d",
      `the indices have the shape ${describeShape(indices.shape)}; expected the input's, ${describeShape(input.shape)}`,
    );
  const lead = input.shape.slice(0, -2);
  const [kernel, steps, pads] = [pair(kernelSize), pair(stride), pair(padding)];
  const smallest = [0, 1].map((d) => (input.size(d - 2) - 1) * steps[d]! - 2 * pads[d]! + kernel[d]!);
  const [height = 0, width = 0] = outputSize?.slice(-2) ?? smallest;
  const plane = (of: Tensor) => reshape(of, [...lead, input.size(-2) * input.size(-1)]);
  const flat = scatter(zeros([...lead, height * width]), -1, plane(indices), plane(input));
  return reshape(flat, [...lead, height, width]);
}

/** torch.nn.functional.max_unpool1d of [N, C, L] or [C, L]. */
export const maxUnpool1d = (
  input: Tensor,
  indices: Tensor,
  kernelSize: number,
  { stride = kernelSize, padding = 0, outputSize }: MaxUnpoolOptions<number> = {},
): Tensor => {
  const plane = maxUnpool2d(unsqueeze(input, -2), unsqueeze(indices, -2), [1, kernelSize], {
    stride: [1, stride],
    padding: [0, padding],
    ...(outputSize ? { outputSize: [1, outputSize.at(-1) ?? 0] } : {}),
  });
  return squeeze(plane, -2);
};

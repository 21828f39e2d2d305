import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { permute, reshape } from "./views";

const fail = (operator: string, input: Tensor, expected: string): never => {
  throw new OperatorError(operator, `the input has shape ${describeShape(input.shape)}; expected ${expected}`);
};

/** torch.nn.functional.pixel_shuffle: [..., C r², H, W] to [..., C, H r, W r] (Shi et al. 2016). */
export function pixelShuffle(input: Tensor, upscaleFactor: number): Tensor {
  const r = upscaleFactor;
  const lead = input.shape.slice(0, -3);
  const [depth = 0, height = 0, width = 0] = input.shape.slice(-3);
  const channels = depth / (r * r);
  if (input.ndim < 3 || !(r >= 1) || !Number.isInteger(channels))
    fail("pixelShuffle", input, `[..., a multiple of ${r * r}, H, W]`);
  const n = lead.length;
  const order = [...lead.keys(), n, n + 3, n + 1, n + 4, n + 2];
  const pixels = permute(reshape(input, [...lead, channels, r, r, height, width]), order);
  return reshape(pixels, [...lead, channels, height * r, width * r]);
}

/** torch.nn.functional.pixel_unshuffle: [..., C, H r, W r] to [..., C r², H, W]. */
export function pixelUnshuffle(input: Tensor, downscaleFactor: number): Tensor {
  const r = downscaleFactor;
  const lead = input.shape.slice(0, -3);
  const [channels = 0, tall = 0, wide = 0] = input.shape.slice(-3);
  const [height, width] = [tall / r, wide / r];
  if (input.ndim < 3 || !(r >= 1) || !Number.isInteger(height) || !Number.isInteger(width))
    fail("pixelUnshuffle", input, `[..., C, multiples of ${r}]`);
  const n = lead.length;
  const order = [...lead.keys(), n, n + 2, n + 4, n + 1, n + 3];
  const pixels = permute(reshape(input, [...lead, channels, height, r, width, r]), order);
  return reshape(pixels, [...lead, channels * r * r, height, width]);
}

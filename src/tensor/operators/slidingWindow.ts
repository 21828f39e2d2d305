import { isFloating } from "../dtype";
import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { add, div, mul, pow } from "./elementwise";
import { sparseMap, type Tap } from "./sparseMap";
import { permute, reshape } from "./views";
import { type Pair, pairOf, windowCount } from "./window";

export interface SlidingWindowOptions {
  /** Default: 1. */
  readonly dilation?: number | readonly number[];
  /** Zeros around the input. Default: 0. */
  readonly padding?: number | readonly number[];
  /** Default: 1. */
  readonly stride?: number | readonly number[];
}

/** A window in one direction, over `length` entries. */
interface Window {
  readonly length: number;
  readonly kernel: number;
  readonly dilation: number;
  readonly padding: number;
  readonly stride: number;
  /** How many places it has. */
  readonly places: number;
}

function windowsOf(
  operator: string,
  plane: Pair,
  kernelSize: number | readonly number[],
  { dilation = 1, padding = 0, stride = 1 }: SlidingWindowOptions,
): [vertical: Window, horizontal: Window] {
  const kernel = pairOf(operator, "kernelSize", kernelSize, 1);
  const dilations = pairOf(operator, "dilation", dilation, 1);
  const paddings = pairOf(operator, "padding", padding, 0);
  const strides = pairOf(operator, "stride", stride, 1);
  const along = (d: 0 | 1): Window => {
    const extent = dilations[d] * (kernel[d] - 1) + 1;
    const places = windowCount(operator, plane[d] + 2 * paddings[d], extent, strides[d]);
    return {
      length: plane[d],
      kernel: kernel[d],
      dilation: dilations[d],
      padding: paddings[d],
      stride: strides[d],
      places,
    };
  };
  return [along(0), along(1)];
}

const keyOf = ({ kernel, dilation, padding, stride }: Window) =>
  `of ${kernel} by ${stride} from ${padding} dilated ${dilation}`;

/** Output k * places + p is entry k of the window at place p. */
function takenTaps({ length, kernel, dilation, padding, stride, places }: Window): Tap[][] {
  return Array.from({ length: kernel * places }, (_, at) => {
    const input = Math.floor(at / places) * dilation + (at % places) * stride - padding;
    return input >= 0 && input < length ? [{ input, weight: 1 }] : [];
  });
}

/** The transpose: each entry sums what stands for it in the windows. */
function returnedTaps(window: Window): Tap[][] {
  const rows = Array.from({ length: window.length }, (): Tap[] => []);
  for (const [output, taps] of takenTaps(window).entries())
    for (const { input } of taps) rows[input]!.push({ input: output, weight: 1 });
  return rows;
}

/**
 * torch.nn.functional.unfold: the windows as columns.
 * @param input floats [N, C, H, W] or [C, H, W].
 * @returns [N, C kH kW, places], without N where the input has none.
 */
export function unfold(
  input: Tensor,
  kernelSize: number | readonly number[],
  options: SlidingWindowOptions = {},
): Tensor {
  if (!isFloating(input.dtype) || (input.ndim !== 3 && input.ndim !== 4))
    throw new OperatorError(
      "unfold",
      `the input is ${input.dtype}${describeShape(input.shape)}; expected floats [N, C, H, W] or [C, H, W]`,
    );
  const lead = input.shape.slice(0, -3);
  const [channels, height, width] = input.shape.slice(-3) as [number, number, number];
  const [rows, columns] = windowsOf("unfold", [height, width], kernelSize, options);
  const tall = sparseMap(input, input.ndim - 2, `windows ${keyOf(rows)}`, () => takenTaps(rows));
  const wide = sparseMap(tall, input.ndim - 1, `windows ${keyOf(columns)}`, () => takenTaps(columns));
  const images = lead[0] ?? 1;
  const split = reshape(wide, [images, channels, rows.kernel, rows.places, columns.kernel, columns.places]);
  const ordered = permute(split, [0, 1, 2, 4, 3, 5]);
  return reshape(ordered, [...lead, channels * rows.kernel * columns.kernel, rows.places * columns.places]);
}

/**
 * torch.nn.functional.fold: the sum of windows at their places, the transpose of `unfold`.
 * @param input floats [N, C kH kW, places] or [C kH kW, places].
 * @param outputSize height and width of the result.
 * @returns [N, C, height, width], without N where the input has none.
 */
export function fold(
  input: Tensor,
  outputSize: number | readonly number[],
  kernelSize: number | readonly number[],
  options: SlidingWindowOptions = {},
): Tensor {
  const size = pairOf("fold", "outputSize", outputSize, 1);
  const [rows, columns] = windowsOf("fold", size, kernelSize, options);
  const lead = input.shape.slice(0, -2);
  const [values = 0, places = 0] = input.shape.slice(-2);
  const channels = values / (rows.kernel * columns.kernel);
  if (!isFloating(input.dtype) || !Number.isInteger(channels) || places !== rows.places * columns.places)
    throw new OperatorError(
      "fold",
      `the input is ${input.dtype}${describeShape(input.shape)}; expected floats [N, a multiple of ${rows.kernel * columns.kernel}, ${rows.places * columns.places}]`,
    );
  const images = lead[0] ?? 1;
  const split = reshape(input, [images, channels, rows.kernel, columns.kernel, rows.places, columns.places]);
  const ordered = reshape(permute(split, [0, 1, 2, 4, 3, 5]), [
    images,
    channels,
    rows.kernel * rows.places,
    columns.kernel * columns.places,
  ]);
  const narrow = sparseMap(ordered, 3, `back to ${size[1]} from windows ${keyOf(columns)}`, () =>
    returnedTaps(columns),
  );
  const flat = sparseMap(narrow, 2, `back to ${size[0]} from windows ${keyOf(rows)}`, () => returnedTaps(rows));
  return reshape(flat, [...lead, channels, ...size]);
}

export interface LocalResponseNormOptions {
  /** Default: 1e-4. */
  readonly alpha?: number;
  /** Default: 0.75. */
  readonly beta?: number;
  /** Default: 1. */
  readonly k?: number;
}

/**
 * torch.nn.functional.local_response_norm: x / (k + alpha m)^beta, where m is the mean of the squares of `size`
 * neighbouring channels, those beyond the ends being 0.
 * @param input floats [N, C, ...].
 */
export function localResponseNorm(
  input: Tensor,
  size: number,
  { alpha = 1e-4, beta = 0.75, k = 1 }: LocalResponseNormOptions = {},
): Tensor {
  if (input.ndim < 3 || !Number.isInteger(size) || size < 1)
    throw new OperatorError(
      "localResponseNorm",
      `the input has shape ${describeShape(input.shape)} and size is ${size}; expected [N, C, ...] and an integer above 0`,
    );
  const before = Math.floor(size / 2);
  const squares = sparseMap(mul(input, input), 1, `mean of ${size} neighbours`, (channels) =>
    Array.from({ length: channels }, (_, channel) =>
      Array.from({ length: size }, (_, tap) => ({ input: channel - before + tap, weight: 1 / size })).filter(
        (tap) => tap.input >= 0 && tap.input < channels,
      ),
    ),
  );
  return div(input, pow(add(mul(squares, alpha), k), beta));
}

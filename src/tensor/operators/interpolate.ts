import { autocasting } from "../autocast";
import { isFloating } from "../dtype";
import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { averageTaps } from "./adaptivePooling";
import { sparseMap, type Tap } from "./sparseMap";

export type InterpolationMode = "nearest" | "linear" | "bilinear" | "bicubic" | "trilinear" | "area" | "nearestExact";

export interface InterpolateOptions {
  /** The output's spatial size, one number for all dimensions or one for each. */
  readonly size?: number | readonly number[] | null;
  /** Or the factor from the input's size to the output's. */
  readonly scaleFactor?: number | readonly number[] | null;
  /** Default: "nearest". */
  readonly mode?: InterpolationMode;
  /** Whether the corner pixels' centres of input and output coincide. Default: false. */
  readonly alignCorners?: boolean | null;
  /** Whether the factor is computed anew from the sizes. Default: false. */
  readonly recomputeScaleFactor?: boolean | null;
}

const ranks: Readonly<Record<InterpolationMode, readonly number[]>> = {
  nearest: [1, 2, 3],
  nearestExact: [1, 2, 3],
  area: [1, 2, 3],
  linear: [1],
  bilinear: [2],
  bicubic: [2],
  trilinear: [3],
};

/**
 * torch.nn.functional.interpolate: resizes the spatial dimensions, one after the other.
 * @param input floats [N, C, ...] with 1 to 3 spatial dimensions.
 */
export const interpolate = autocasting("interpolate", (input: Tensor, options: InterpolateOptions): Tensor => {
  const { mode = "nearest", alignCorners = null, recomputeScaleFactor = false } = options;
  const spatial = input.shape.slice(2);
  const fail = (problem: string): never => {
    throw new OperatorError("interpolate", problem);
  };
  if (!ranks[mode].includes(spatial.length) || !isFloating(input.dtype))
    fail(
      `the input is ${input.dtype}${describeShape(input.shape)}; expected floats with ${ranks[mode].join(" or ")} spatial dimensions for the mode ${mode}`,
    );
  const each = (value: number | readonly number[] | null | undefined, what: string) => {
    if (value === null || value === undefined) return null;
    const list = typeof value === "number" ? spatial.map(() => value) : value;
    if (list.length !== spatial.length || list.some((part) => !(part > 0)))
      fail(`${what} is ${JSON.stringify(value)}; expected ${spatial.length} numbers above 0`);
    return list;
  };
  const size = each(options.size, "size");
  const factors = each(options.scaleFactor, "scaleFactor");
  if ((size === null) === (factors === null)) fail("expected either size or scaleFactor");
  return spatial.reduce((value, from, d) => {
    const to = size?.[d] ?? Math.floor(from * (factors?.[d] ?? 1));
    const factor = recomputeScaleFactor ? null : (factors?.[d] ?? null);
    const key = `interpolate ${mode} ${alignCorners ? "corners" : "pixels"} to ${to} by ${factor ?? "sizes"}`;
    return sparseMap(value, d + 2, key, (inputs) => tapsFor(mode, inputs, to, factor, alignCorners ?? false));
  }, input);
});

function tapsFor(mode: InterpolationMode, from: number, to: number, factor: number | null, corners: boolean): Tap[][] {
  const { fround } = Math;
  /** Input pixels for each output pixel. */
  const scale = fround(factor === null ? from / to : 1 / factor);
  const last = from - 1;
  const outputs = Array.from({ length: to }, (_, at) => at);
  switch (mode) {
    case "area":
      return averageTaps(from, to);
    case "nearest":
      return outputs.map((at) => [{ input: Math.min(last, Math.floor(fround(at * scale))), weight: 1 }]);
    case "nearestExact":
      return outputs.map((at) => [{ input: Math.min(last, Math.floor(fround((at + 0.5) * scale))), weight: 1 }]);
    case "linear":
    case "bilinear":
    case "trilinear":
      return outputs.map((at) => {
        const source = Math.max(0, sourceOf(at, from, to, scale, corners));
        const first = Math.min(last, Math.floor(source));
        const part = Math.min(1, fround(source - first));
        return merged([
          { input: first, weight: fround(1 - part) },
          { input: Math.min(last, first + 1), weight: part },
        ]);
      });
    case "bicubic":
      return outputs.map((at) => {
        const source = sourceOf(at, from, to, scale, corners);
        const first = Math.floor(source);
        return merged(
          cubicWeights(fround(source - first)).map((weight, tap) => ({
            input: Math.min(last, Math.max(0, first - 1 + tap)),
            weight,
          })),
        );
      });
  }
}

/** Where an output pixel's centre lies in the input. */
function sourceOf(at: number, from: number, to: number, scale: number, corners: boolean): number {
  const { fround } = Math;
  if (corners) return to > 1 ? fround(at * fround((from - 1) / (to - 1))) : 0;
  return fround(fround(scale * (at + 0.5)) - 0.5);
}

/** Keys' cubic convolution with a = -0.75, for a point at `t` between the second and the third of four pixels. */
function cubicWeights(t: number): number[] {
  const a = -0.75;
  const near = (x: number) => ((a + 2) * x - (a + 3)) * x * x + 1;
  const far = (x: number) => ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return [far(t + 1), near(t), near(1 - t), far(2 - t)];
}

/** One tap for each input, and none without weight. */
function merged(taps: readonly Tap[]): Tap[] {
  const byInput = new Map<number, number>();
  for (const { input, weight } of taps) byInput.set(input, (byInput.get(input) ?? 0) + weight);
  return [...byInput].flatMap(([input, weight]) => (weight === 0 ? [] : [{ input, weight }]));
}

import joinMomentsCode from "../../../shaders/normJoinMoments.wgsl?raw";
import rowDotsCode from "../../../shaders/normRowDots.wgsl?raw";
import rowMomentsCode from "../../../shaders/normRowMoments.wgsl?raw";
import rowMomentsOfQuadsCode from "../../../shaders/normRowMomentsOfQuads.wgsl?raw";
import sumPartsCode from "../../../shaders/sumParts.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply, noGrad } from "../apply";
import { autocasting } from "../autocast";
import { isFloating } from "../dtype";
import { describeShape, OperatorError, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { zeros } from "./creation";
import { add, mul, neg, type Operand, rsqrt, sub } from "./elementwise";
import { elementFunction } from "./elementwiseKernel";
import { copy_ } from "./inPlace";
import { mean } from "./reduction";
import type { Operator, Value } from "./table";
import { expand, reshape, select } from "./views";

/*
 * All norms are made of three operators on matrices, each of whose gradients is made of the same three:
 *
 *   rowMoments(x) [R, L] -> [2, R]: the mean and variance of each row;
 *   scaleRows(x, scale, shift) [R, L], [R], [R] -> [R, L]: each row times its scale plus its shift;
 *   rowDots(a, b) [R, L], [R, L] -> [2, R]: for each row the sum of a, and of a times b.
 *
 * What lies between them is arithmetic on a few numbers for each row. torch's batch and group norm on the CPU compute
 * in the same way.
 */

/** Elements that one invocation reduces in turn. */
const runLength = 128;
const gridFor = (count: number, perWorkgroup = 64) => spread(Math.ceil(count / perWorkgroup));
const partsOf = (length: number) => Math.max(1, Math.ceil(length / runLength));

const rowMomentsShader: Shader = { name: "normRowMoments", code: rowMomentsCode, bindings: ["read", "write"] };
const rowMomentsOfQuadsShader: Shader = {
  name: "normRowMomentsOfQuads",
  code: rowMomentsOfQuadsCode,
  bindings: ["read", "write"],
};
const joinMomentsShader: Shader = { name: "normJoinMoments", code: joinMomentsCode, bindings: ["read", "write"] };

const rowMomentsRow: Operator = {
  name: "rowMoments",
  infer: ([input]) => ({ shape: [2, input!.shape[0]!], dtype: "float32" }),
  lower(lowering, { inputs: [input] }) {
    const output = lowering.result();
    const [rows = 0, length = 0] = input!.shape;
    if (rows === 0) return output;
    const parts = partsOf(length);
    const partial = lowering.allocate([2, parts, rows], "float32");
    lowering.dispatch({
      // Parts of whole vectors, equally many.
      shader: length % (4 * parts) === 0 ? rowMomentsOfQuadsShader : rowMomentsShader,
      bindings: [lowering.dense(input!), partial],
      uniforms: [rows, length, parts],
      grid: gridFor(rows * parts),
      work: 4 * rows * length,
    });
    lowering.dispatch({
      shader: joinMomentsShader,
      bindings: [partial, output],
      uniforms: [rows, length, parts],
      grid: gridFor(rows),
      work: 8 * rows * parts,
    });
    return output;
  },
  // d mean = 1/L, and d variance = 2 (x - mean) / L.
  backward({ inputs: [input], output, gradient }) {
    const length = input!.shape[1]!;
    const slope = mul(select(gradient, 0, 1), 2 / length);
    const level = sub(mul(select(gradient, 0, 0), 1 / length), mul(slope, select(output, 0, 0)));
    return [scaleRows(input!, slope, level)];
  },
};

const scaled = elementFunction({ name: "scaleRows", body: "return a * b + c;" });

/** [R] as a column, [R, 1]. */
const columnOf = (value: Value): Value =>
  value.kind === "constant"
    ? { ...value, shape: [...value.shape, 1] }
    : { ...value, shape: [...value.shape, 1], strides: [...value.strides, 0] };

const scaleRowsRow: Operator = {
  name: "scaleRows",
  infer: ([input]) => ({ shape: input!.shape, dtype: "float32" }),
  lower: (lowering, { inputs: [input, scale, shift] }) =>
    lowering.elementwise(scaled, [input!, columnOf(scale!), columnOf(shift!)], []),
  backward({ inputs: [input, scale], gradient, needs }) {
    const dots = needs[1] || needs[2] ? rowDots(gradient, input!) : null;
    return [
      needs[0] ? scaleRows(gradient, scale!, zeros(scale!.shape)) : null,
      dots && select(dots, 0, 1),
      dots && select(dots, 0, 0),
    ];
  },
};

const rowDotsShader: Shader = { name: "normRowDots", code: rowDotsCode, bindings: ["read", "read", "write"] };
const sumPartsShader: Shader = { name: "sumParts", code: sumPartsCode, bindings: ["read", "write"] };

const rowDotsRow: Operator = {
  name: "rowDots",
  infer: ([a]) => ({ shape: [2, a!.shape[0]!], dtype: "float32" }),
  lower(lowering, { inputs: [a, b] }) {
    const output = lowering.result();
    const [rows = 0, length = 0] = a!.shape;
    if (rows === 0) return output;
    const parts = partsOf(length);
    const partial = lowering.allocate([parts, 2, rows], "float32");
    lowering.dispatch({
      shader: rowDotsShader,
      bindings: [lowering.dense(a!), lowering.dense(b!), partial],
      uniforms: [rows, length, parts],
      grid: gridFor(rows * parts),
      work: 4 * rows * length,
    });
    lowering.dispatch({
      shader: sumPartsShader,
      bindings: [partial, output],
      uniforms: [2 * rows, parts],
      grid: gridFor(2 * rows),
      work: 2 * rows * parts,
    });
    return output;
  },
  backward({ inputs: [a, b], gradient, needs }) {
    const ofDot = select(gradient, 0, 1);
    return [
      needs[0] ? scaleRows(b!, ofDot, select(gradient, 0, 0)) : null,
      needs[1] ? scaleRows(a!, ofDot, zeros(ofDot.shape)) : null,
    ];
  },
};

export const normalization: readonly Operator[] = [rowMomentsRow, scaleRowsRow, rowDotsRow];

export const rowMoments = (input: Tensor): Tensor => apply(rowMomentsRow, [input], {});
export const scaleRows = (input: Tensor, scale: Tensor, shift: Tensor): Tensor =>
  apply(scaleRowsRow, [input, scale, shift], {});
const rowDots = (a: Tensor, b: Tensor): Tensor => apply(rowDotsRow, [a, b], {});

export interface AffineOptions {
  /** A factor for each channel; default: 1. */
  readonly weight?: Tensor | null;
  /** What is added to each channel; default: 0. */
  readonly bias?: Tensor | null;
  /** Added to the variance. Default: 1e-5. */
  readonly eps?: number;
}

export interface BatchNormOptions extends AffineOptions {
  /** Whether the batch's own moments are used, and the running ones moved towards them. Default: false. */
  readonly training?: boolean;
  /** The part of the batch's moments in the new running ones. Default: 0.1. */
  readonly momentum?: Operand;
}

/**
 * torch.nn.functional.batch_norm: (x - mean) / sqrt(variance + eps) * weight + bias for each channel. In training the
 * moments are those of this call's batch alone.
 * @param input floats [N, C, ...].
 * @param runningMean [C]; changed in place in training, where it may be null.
 * @param runningVar [C], likewise; it takes the unbiased variance.
 * @throws OperatorError for shapes that don't go together, or a single value for each channel in training.
 */
export const batchNorm = autocasting(
  "batchNorm",
  (input: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, options: BatchNormOptions = {}): Tensor => {
    const operator = "batchNorm";
    const { training = false, momentum = 0.1, eps = 1e-5, weight = null, bias = null } = options;
    const [images = 0, channels = input.numel] = input.shape;
    checkInput(operator, input, 1);
    checkChannels(operator, channels, { runningMean, runningVar, weight, bias });
    if (input.numel === 0) return mul(input, 1);
    const length = input.numel / (images * channels);
    const rows = reshape(input, [images * channels, length]);
    const { center, spread } = training
      ? batchMoments(rows, images, channels, length)
      : { center: runningMean, spread: runningVar };
    if (!center || !spread)
      throw new OperatorError(operator, "runningMean or runningVar is null; expected both where training is false");
    if (training) {
      const count = images * length;
      if (count === 1)
        throw new OperatorError(
          operator,
          `the input has shape ${describeShape(input.shape)}; expected more than one value for each channel in training`,
        );
      const move = (running: Tensor, batch: Tensor) => copy_(running, add(running, mul(sub(batch, running), momentum)));
      noGrad(() => {
        if (runningMean) move(runningMean, center);
        if (runningVar) move(runningVar, mul(spread, count / (count - 1)));
      });
    }
    const { scale, shift } = affine(center, rsqrt(add(spread, eps)), weight, bias);
    const forRows = (of: Tensor) => reshape(expand(of, [images, channels]), [images * channels]);
    return reshape(scaleRows(rows, forRows(scale), forRows(shift)), input.shape);
  },
);

/** Mean and biased variance of each channel over all images, from those of each image, which all have equal lengths. */
function batchMoments(rows: Tensor, images: number, channels: number, length: number) {
  const perImage = length > 1 ? reshape(rowMoments(rows), [2, images, channels]) : null;
  const means = perImage ? select(perImage, 0, 0) : reshape(rows, [images, channels]);
  const center = mean(means, 0);
  const deviation = sub(means, center);
  const between = mean(mul(deviation, deviation), 0);
  const spread = perImage ? add(mean(select(perImage, 0, 1), 0), between) : between;
  return { center, spread };
}

/**
 * torch.nn.functional.group_norm: each image's channels are normalised in `groups` groups, then scaled by channel.
 * @param input floats [N, C, ...]; weight and bias [C].
 * @throws OperatorError for shapes that don't go together.
 */
export const groupNorm = autocasting(
  "groupNorm",
  (input: Tensor, groups: number, options: AffineOptions = {}): Tensor => {
    const operator = "groupNorm";
    const { eps = 1e-5, weight = null, bias = null } = options;
    const [images = 0, channels = 0] = input.shape;
    checkInput(operator, input, 2);
    checkChannels(operator, channels, { weight, bias });
    if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0)
      throw new OperatorError(
        operator,
        `groups is ${groups} for ${channels} channels; expected a divisor of their number`,
      );
    const planeSize = sizeOf(input.shape.slice(2));
    const perGroup = channels / groups;
    const moments = rowMoments(reshape(input, [images * groups, perGroup * planeSize]));
    const forGroups = (of: Tensor) => reshape(of, [images, groups, 1]);
    const forChannels = (of: Tensor | null) => of && reshape(of, [1, groups, perGroup]);
    const factor = rsqrt(add(forGroups(select(moments, 0, 1)), eps));
    const { scale, shift } = affine(forGroups(select(moments, 0, 0)), factor, forChannels(weight), forChannels(bias));
    const isAffine = weight !== null || bias !== null;
    const wide = [images, groups, isAffine ? perGroup : 1];
    const count = sizeOf(wide);
    const forRows = (of: Tensor) => reshape(expand(of, wide), [count]);
    const rows = reshape(input, [count, isAffine ? planeSize : perGroup * planeSize]);
    return reshape(scaleRows(rows, forRows(scale), forRows(shift)), input.shape);
  },
);

/** (x - center) * factor * weight + bias as x * scale + shift. */
function affine(center: Tensor, factor: Tensor, weight: Tensor | null, bias: Tensor | null) {
  const scale = weight ? mul(factor, weight) : factor;
  const moved = mul(center, scale);
  return { scale, shift: bias ? sub(bias, moved) : neg(moved) };
}

export function checkInput(operator: string, input: Tensor, rank: number): void {
  if (!isFloating(input.dtype) || input.ndim < rank)
    throw new OperatorError(
      operator,
      `the input is ${input.dtype}${describeShape(input.shape)}; expected floats [N, C, ...]`,
    );
}

function checkChannels(operator: string, channels: number, tensors: Readonly<Record<string, Tensor | null>>): void {
  for (const [what, tensor] of Object.entries(tensors))
    if (tensor && (tensor.ndim !== 1 || tensor.shape[0] !== channels || !isFloating(tensor.dtype)))
      throw new OperatorError(
        operator,
        `${what} is ${tensor.dtype}${describeShape(tensor.shape)}; expected floats [${channels}]`,
      );
}

import {
  add,
  batchNorm,
  copy_,
  groupNorm,
  layerNorm,
  noGrad,
  OperatorError,
  reciprocal,
  type Tensor,
  tensor,
} from "../tensor/index";
import { ones_ } from "./init";
import { emptyParameter } from "./layers";
import { Module } from "./module";

export interface NormOptions {
  /** Added to the variance. Default: 1e-5. */
  readonly eps?: number;
  /** Whether there are a weight and a bias. Default: true. */
  readonly affine?: boolean;
}

export interface BatchNormLayerOptions extends NormOptions {
  /** The part of a batch's moments in the new running ones; null averages over all batches. Default: 0.1. */
  readonly momentum?: number | null;
  /** Whether running moments are kept, for evaluation; without them each batch's own are used. Default: true. */
  readonly trackRunningStats?: boolean;
}

/** Batch norm over [N, C] or [N, C, ...]; its subclasses say how many dimensions they take. */
class BatchNorm extends Module {
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly runningMean: Tensor | null;
  readonly runningVar: Tensor | null;
  /** int32 []: how many batches the running moments come from. */
  readonly numBatchesTracked: Tensor | null;

  constructor(
    readonly numFeatures: number,
    readonly options: BatchNormLayerOptions = {},
    readonly ranks: readonly number[],
  ) {
    super();
    const { affine = true, trackRunningStats = true } = options;
    this.weight = affine ? ones_(emptyParameter(numFeatures)) : null;
    this.bias = affine ? emptyParameter(numFeatures) : null;
    this.runningMean = trackRunningStats ? tensor(new Float32Array(numFeatures)) : null;
    this.runningVar = trackRunningStats ? tensor(new Float32Array(numFeatures).fill(1)) : null;
    this.numBatchesTracked = trackRunningStats ? tensor(Int32Array.of(0), { shape: [], dtype: "int32" }) : null;
  }

  forward(input: Tensor): Tensor {
    if (!this.ranks.includes(input.ndim))
      throw new OperatorError(
        this.constructor.name,
        `the input has the shape [${input.shape.join(", ")}]; expected ${this.ranks.join(" or ")} dimensions`,
      );
    const { runningMean, runningVar, numBatchesTracked: tracked, weight, bias } = this;
    const { eps = 1e-5, momentum = 0.1 } = this.options;
    if (!this.training && tracked) return batchNorm(input, runningMean, runningVar, { weight, bias, eps });
    if (tracked) noGrad(() => copy_(tracked, add(tracked, 1)));
    // Without a momentum, the n-th batch has a part of 1/n: the running moments are the mean over all batches.
    const part = momentum ?? (tracked ? reciprocal(tracked) : 0);
    return batchNorm(input, runningMean, runningVar, { weight, bias, eps, training: true, momentum: part });
  }
}

/** Batch norm of [N, C] or [N, C, L]. */
export class BatchNorm1d extends BatchNorm {
  constructor(numFeatures: number, options: BatchNormLayerOptions = {}) {
    super(numFeatures, options, [2, 3]);
  }
}

/** Batch norm of [N, C, H, W]. */
export class BatchNorm2d extends BatchNorm {
  constructor(numFeatures: number, options: BatchNormLayerOptions = {}) {
    super(numFeatures, options, [4]);
  }
}

/** Normalises each image's channels in groups: [N, C, ...]. */
export class GroupNorm extends Module {
  /** [numChannels] */
  readonly weight: Tensor | null;
  /** [numChannels] */
  readonly bias: Tensor | null;

  constructor(
    readonly numGroups: number,
    numChannels: number,
    readonly options: NormOptions = {},
  ) {
    super();
    const { affine = true } = options;
    if (numChannels % numGroups !== 0)
      throw new Error(
        `GroupNorm has ${numChannels} channels in ${numGroups} groups; expected a multiple of the groups.`,
      );
    this.weight = affine ? ones_(emptyParameter(numChannels)) : null;
    this.bias = affine ? emptyParameter(numChannels) : null;
  }

  forward(input: Tensor): Tensor {
    const { weight, bias, options } = this;
    return groupNorm(input, this.numGroups, { weight, bias, eps: options.eps ?? 1e-5 });
  }
}

/** Normalises over the last dimensions, whose sizes are `normalizedShape`. */
export class LayerNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;

  constructor(
    normalizedShape: number | readonly number[],
    readonly options: NormOptions = {},
  ) {
    super();
    const { affine = true } = options;
    this.normalizedShape = typeof normalizedShape === "number" ? [normalizedShape] : normalizedShape;
    this.weight = affine ? ones_(emptyParameter(...this.normalizedShape)) : null;
    this.bias = affine ? emptyParameter(...this.normalizedShape) : null;
  }

  forward(input: Tensor): Tensor {
    const { weight, bias, options } = this;
    return layerNorm(input, this.normalizedShape, { weight, bias, eps: options.eps ?? 1e-5 });
  }
}

import {
  add,
  batchNorm,
  copy_,
  groupNorm,
  instanceNorm,
  type LocalResponseNormOptions,
  layerNorm,
  localResponseNorm,
  noGrad,
  OperatorError,
  reciprocal,
  rmsNorm,
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

export interface InstanceNormLayerOptions extends NormOptions {
  /** The part of a batch's moments in the new running ones. Default: 0.1. */
  readonly momentum?: number;
  /** Whether running moments are kept and used in evaluation. Default: false. */
  readonly trackRunningStats?: boolean;
}

/** Instance norm; its subclasses say how many dimensions they take. Without a weight and a bias by default. */
class InstanceNorm extends Module {
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly runningMean: Tensor | null;
  readonly runningVar: Tensor | null;
  /** int32 []: how many batches the running moments come from. */
  readonly numBatchesTracked: Tensor | null;

  constructor(
    readonly numFeatures: number,
    readonly options: InstanceNormLayerOptions = {},
    readonly rank: number,
  ) {
    super();
    const { affine = false, trackRunningStats = false } = options;
    this.weight = affine ? ones_(emptyParameter(numFeatures)) : null;
    this.bias = affine ? emptyParameter(numFeatures) : null;
    this.runningMean = trackRunningStats ? tensor(new Float32Array(numFeatures)) : null;
    this.runningVar = trackRunningStats ? tensor(new Float32Array(numFeatures).fill(1)) : null;
    this.numBatchesTracked = trackRunningStats ? tensor(Int32Array.of(0), { shape: [], dtype: "int32" }) : null;
  }

  forward(input: Tensor): Tensor {
    if (input.ndim === this.rank - 1) return this.forward(input.unsqueeze(0)).squeeze(0);
    if (input.ndim !== this.rank)
      throw new OperatorError(
        this.constructor.name,
        `the input has the shape [${input.shape.join(", ")}]; expected ${this.rank} dimensions`,
      );
    const { runningMean, runningVar, weight, bias, options } = this;
    const { eps = 1e-5, momentum = 0.1 } = options;
    const useInputStats = this.training || !runningMean;
    return instanceNorm(input, runningMean, runningVar, { weight, bias, eps, momentum, useInputStats });
  }
}

/** Instance norm of [N, C, L]. */
export class InstanceNorm1d extends InstanceNorm {
  constructor(numFeatures: number, options: InstanceNormLayerOptions = {}) {
    super(numFeatures, options, 3);
  }
}

/** Instance norm of [N, C, H, W]. */
export class InstanceNorm2d extends InstanceNorm {
  constructor(numFeatures: number, options: InstanceNormLayerOptions = {}) {
    super(numFeatures, options, 4);
  }
}

export interface RMSNormOptions {
  /** Added to the mean square. Default: float32's 2^-23. */
  readonly eps?: number | null;
  /** Whether there is a weight. Default: true. */
  readonly elementwiseAffine?: boolean;
}

/** Divides by the root of the mean square over the last dimensions, whose sizes are `normalizedShape`. */
export class RMSNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly weight: Tensor | null;

  constructor(
    normalizedShape: number | readonly number[],
    readonly options: RMSNormOptions = {},
  ) {
    super();
    this.normalizedShape = typeof normalizedShape === "number" ? [normalizedShape] : normalizedShape;
    this.weight = (options.elementwiseAffine ?? true) ? ones_(emptyParameter(...this.normalizedShape)) : null;
  }

  forward(input: Tensor): Tensor {
    return rmsNorm(input, this.normalizedShape, this.weight, this.options.eps ?? null);
  }
}

/** Divides by a power of neighbouring channels' mean square. */
export class LocalResponseNorm extends Module {
  constructor(
    readonly size: number,
    readonly options: LocalResponseNormOptions = {},
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return localResponseNorm(input, this.size, this.options);
  }
}

import {
  type Conv1dOptions,
  type ConvTransposeOptions,
  conv1d,
  conv2d,
  convTranspose1d,
  convTranspose2d,
  type Tensor,
} from "../tensor/index";
import { calculateFan, kaimingUniform_, uniform_ } from "./init";
import { emptyParameter, type LinearOptions } from "./layers";
import { Module } from "./module";

type Size = number | readonly [number, number];

export interface Conv2dLayerOptions extends LinearOptions {
  /** Default: 1. */
  readonly stride?: Size;
  /** Zeros around the input, or "same", or "valid" for none. Default: 0. */
  readonly padding?: Size | "same" | "valid";
  /** Default: 1. */
  readonly dilation?: Size;
  /** Default: 1. */
  readonly groups?: number;
}

export type Conv1dLayerOptions = LinearOptions & Conv1dOptions;
export type ConvTransposeLayerOptions = LinearOptions & ConvTransposeOptions;

/** Input channels of a group, where the groups divide both sides' channels. */
function channelsOfGroup(layer: string, inChannels: number, outChannels: number, groups: number): number {
  const perGroup = inChannels / groups;
  if (!Number.isInteger(perGroup) || !Number.isInteger(outChannels / groups))
    throw new Error(
      `${layer} has ${inChannels} input and ${outChannels} output channels in ${groups} groups; expected multiples of the groups.`,
    );
  return perGroup;
}

/** PyTorch's initial weight and bias. */
function initialized(shape: readonly number[], outChannels: number, hasBias: boolean) {
  const weight = kaimingUniform_(emptyParameter(...shape), { a: Math.sqrt(5) });
  const bound = 1 / Math.sqrt(calculateFan(weight).fanIn);
  return { weight, bias: hasBias ? uniform_(emptyParameter(outChannels), -bound, bound) : null };
}

const pair = (size: Size): readonly [number, number] => (typeof size === "number" ? [size, size] : size);

/** [N, inChannels, H, W] to [N, outChannels, H', W']. */
export class Conv2d extends Module {
  /** [outChannels, inChannels / groups, kH, kW] */
  readonly weight: Tensor;
  /** [outChannels] */
  readonly bias: Tensor | null;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Size,
    readonly options: Conv2dLayerOptions = {},
  ) {
    super();
    const { bias = true, groups = 1 } = options;
    const perGroup = channelsOfGroup("Conv2d", inChannels, outChannels, groups);
    ({ weight: this.weight, bias: this.bias } = initialized(
      [outChannels, perGroup, ...pair(kernelSize)],
      outChannels,
      bias,
    ));
  }

  forward(input: Tensor): Tensor {
    return conv2d(input, this.weight, this.bias, this.options);
  }
}

/** [N, inChannels, L] to [N, outChannels, L']. */
export class Conv1d extends Module {
  /** [outChannels, inChannels / groups, k] */
  readonly weight: Tensor;
  /** [outChannels] */
  readonly bias: Tensor | null;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: number,
    readonly options: Conv1dLayerOptions = {},
  ) {
    super();
    const { bias = true, groups = 1 } = options;
    const perGroup = channelsOfGroup("Conv1d", inChannels, outChannels, groups);
    ({ weight: this.weight, bias: this.bias } = initialized([outChannels, perGroup, kernelSize], outChannels, bias));
  }

  forward(input: Tensor): Tensor {
    return conv1d(input, this.weight, this.bias, this.options);
  }
}

/** A convolution's transpose: [N, inChannels, H, W] to [N, outChannels, H', W']. */
export class ConvTranspose2d extends Module {
  /** [inChannels, outChannels / groups, kH, kW] */
  readonly weight: Tensor;
  /** [outChannels] */
  readonly bias: Tensor | null;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Size,
    readonly options: ConvTransposeLayerOptions = {},
  ) {
    super();
    const { bias = true, groups = 1 } = options;
    const perGroup = channelsOfGroup("ConvTranspose2d", outChannels, inChannels, groups);
    ({ weight: this.weight, bias: this.bias } = initialized(
      [inChannels, perGroup, ...pair(kernelSize)],
      outChannels,
      bias,
    ));
  }

  forward(input: Tensor): Tensor {
    return convTranspose2d(input, this.weight, this.bias, this.options);
  }
}

/** A convolution's transpose: [N, inChannels, L] to [N, outChannels, L']. */
export class ConvTranspose1d extends Module {
  /** [inChannels, outChannels / groups, k] */
  readonly weight: Tensor;
  /** [outChannels] */
  readonly bias: Tensor | null;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: number,
    readonly options: ConvTransposeLayerOptions = {},
  ) {
    super();
    const { bias = true, groups = 1 } = options;
    const perGroup = channelsOfGroup("ConvTranspose1d", outChannels, inChannels, groups);
    ({ weight: this.weight, bias: this.bias } = initialized([inChannels, perGroup, kernelSize], outChannels, bias));
  }

  forward(input: Tensor): Tensor {
    return convTranspose1d(input, this.weight, this.bias, this.options);
  }
}

import {
  type AvgPool2dOptions,
  avgPool2d,
  conv2d,
  flatten,
  gelu,
  linear,
  type MaxPool2dOptions,
  maxPool2d,
  relu,
  sigmoid,
  type Tensor,
  tanh,
  tensor,
} from "../tensor/index";
import { kaimingUniform_, uniform_ } from "./init";
import { Module, parameter } from "./module";

export const emptyParameter = (...shape: number[]): Tensor =>
  parameter(tensor(new Float32Array(shape.reduce((product, size) => product * size, 1)), { shape }));

export interface LinearOptions {
  /** Default: true. */
  readonly bias?: boolean;
}

/** x W^T + b: [..., inFeatures] to [..., outFeatures]. */
export class Linear extends Module {
  /** [outFeatures, inFeatures] */
  readonly weight: Tensor;
  /** [outFeatures] */
  readonly bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, { bias = true }: LinearOptions = {}) {
    super();
    this.weight = kaimingUniform_(emptyParameter(outFeatures, inFeatures), { a: Math.sqrt(5) });
    const bound = 1 / Math.sqrt(inFeatures);
    this.bias = bias ? uniform_(emptyParameter(outFeatures), -bound, bound) : null;
  }

  forward(input: Tensor): Tensor {
    return linear(input, this.weight, this.bias);
  }
}

export interface Conv2dLayerOptions extends LinearOptions {
  /** Default: 1. */
  readonly stride?: number | readonly [number, number];
  /** Zeros around the input, or "same", or "valid" for none. Default: 0. */
  readonly padding?: number | readonly [number, number] | "same" | "valid";
  /** Default: 1. */
  readonly dilation?: number | readonly [number, number];
  /** Default: 1. */
  readonly groups?: number;
}

/** [N, inChannels, H, W] to [N, outChannels, H', W']. */
export class Conv2d extends Module {
  /** [outChannels, inChannels / groups, kH, kW] */
  readonly weight: Tensor;
  /** [outChannels] */
  readonly bias: Tensor | null;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: number | readonly [number, number],
    readonly options: Conv2dLayerOptions = {},
  ) {
    super();
    const { bias = true, groups = 1 } = options;
    const [height, width] = typeof kernelSize === "number" ? [kernelSize, kernelSize] : kernelSize;
    const perGroup = inChannels / groups;
    if (!Number.isInteger(perGroup) || !Number.isInteger(outChannels / groups))
      throw new Error(
        `Conv2d has ${inChannels} input and ${outChannels} output channels in ${groups} groups; expected multiples of the groups.`,
      );
    this.weight = kaimingUniform_(emptyParameter(outChannels, perGroup, height, width), { a: Math.sqrt(5) });
    const bound = 1 / Math.sqrt(perGroup * height * width);
    this.bias = bias ? uniform_(emptyParameter(outChannels), -bound, bound) : null;
  }

  forward(input: Tensor): Tensor {
    return conv2d(input, this.weight, this.bias, this.options);
  }
}

export class ReLU extends Module {
  forward(input: Tensor): Tensor {
    return relu(input);
  }
}

export class Sigmoid extends Module {
  forward(input: Tensor): Tensor {
    return sigmoid(input);
  }
}

export class Tanh extends Module {
  forward(input: Tensor): Tensor {
    return tanh(input);
  }
}

export class GELU extends Module {
  constructor(readonly approximate: "none" | "tanh" = "none") {
    super();
  }

  forward(input: Tensor): Tensor {
    return gelu(input, this.approximate);
  }
}

export class Identity extends Module {
  forward(input: Tensor): Tensor {
    return input;
  }
}

/** Joins dimensions `startDim` to `endDim` into one. */
export class Flatten extends Module {
  constructor(
    readonly startDim = 1,
    readonly endDim = -1,
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return flatten(input, this.startDim, this.endDim);
  }
}

export class MaxPool2d extends Module {
  constructor(
    readonly kernelSize: number | readonly [number, number],
    readonly options: MaxPool2dOptions = {},
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return maxPool2d(input, this.kernelSize, this.options);
  }
}

export class AvgPool2d extends Module {
  constructor(
    readonly kernelSize: number | readonly [number, number],
    readonly options: AvgPool2dOptions = {},
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return avgPool2d(input, this.kernelSize, this.options);
  }
}

import {
  bilinear,
  cosineSimilarity,
  flatten,
  linear,
  pairwiseDistance,
  reshape,
  type Tensor,
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

/** x1^T W x2 + b for each output: [..., in1Features] and [..., in2Features] to [..., outFeatures]. */
export class Bilinear extends Module {
  /** [outFeatures, in1Features, in2Features] */
  readonly weight: Tensor;
  /** [outFeatures] */
  readonly bias: Tensor | null;

  constructor(in1Features: number, in2Features: number, outFeatures: number, { bias = true }: LinearOptions = {}) {
    super();
    const bound = 1 / Math.sqrt(in1Features);
    this.weight = uniform_(emptyParameter(outFeatures, in1Features, in2Features), -bound, bound);
    this.bias = bias ? uniform_(emptyParameter(outFeatures), -bound, bound) : null;
  }

  forward(input1: Tensor, input2: Tensor): Tensor {
    return bilinear(input1, input2, this.weight, this.bias);
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

/** Splits a dimension into several. */
export class Unflatten extends Module {
  constructor(
    readonly dim: number,
    readonly sizes: readonly number[],
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    const dim = this.dim < 0 ? this.dim + input.ndim : this.dim;
    return reshape(input, input.shape.toSpliced(dim, 1, ...this.sizes));
  }
}

/** torch.nn.CosineSimilarity: of two tensors along a dimension. */
export class CosineSimilarity extends Module {
  constructor(
    readonly dim = 1,
    readonly eps = 1e-8,
  ) {
    super();
  }

  forward(x1: Tensor, x2: Tensor): Tensor {
    return cosineSimilarity(x1, x2, this.dim, this.eps);
  }
}

/** torch.nn.PairwiseDistance: the norm of the difference of vectors, along the last dimension. */
export class PairwiseDistance extends Module {
  constructor(
    readonly p = 2,
    readonly eps = 1e-6,
    readonly keepdim = false,
  ) {
    super();
  }

  forward(x1: Tensor, x2: Tensor): Tensor {
    return pairwiseDistance(x1, x2, this.p, this.eps, this.keepdim);
  }
}

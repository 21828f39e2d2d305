import {
  celu,
  elu,
  gelu,
  glu,
  hardshrink,
  hardsigmoid,
  hardswish,
  hardtanh,
  leakyRelu,
  logSoftmax,
  logsigmoid,
  mish,
  prelu,
  relu,
  relu6,
  rrelu,
  selu,
  sigmoid,
  silu,
  softmax,
  softmin,
  softplus,
  softshrink,
  softsign,
  type Tensor,
  tanh,
  tanhshrink,
  threshold,
} from "../tensor/index";
import { constant_ } from "./init";
import { emptyParameter } from "./layers";
import { Module, type ModuleClass } from "./module";
import { drawUniform } from "./randomness";

/** The module of a function without options. */
const plain = (of: (input: Tensor) => Tensor): ModuleClass<[], [input: Tensor]> =>
  class extends Module {
    forward(input: Tensor): Tensor {
      return of(input);
    }
  };

/** The module of a function with one number, with its default. */
const withNumber = (
  of: (input: Tensor, value: number) => Tensor,
  otherwise: number,
): ModuleClass<[value?: number], [input: Tensor], { readonly value: number }> =>
  class extends Module {
    constructor(readonly value: number = otherwise) {
      super();
    }

    forward(input: Tensor): Tensor {
      return of(input, this.value);
    }
  };

/** The module of a function with two numbers, with their defaults. */
const withNumbers = (
  of: (input: Tensor, first: number, second: number) => Tensor,
  [firstDefault, secondDefault]: readonly [number, number],
): ModuleClass<
  [first?: number, second?: number],
  [input: Tensor],
  { readonly first: number; readonly second: number }
> =>
  class extends Module {
    constructor(
      readonly first: number = firstDefault,
      readonly second: number = secondDefault,
    ) {
      super();
    }

    forward(input: Tensor): Tensor {
      return of(input, this.first, this.second);
    }
  };

/** max(x, 0). */
export class ReLU extends plain(relu) {}
export class ReLU6 extends plain(relu6) {}
export class Sigmoid extends plain(sigmoid) {}
export class Tanh extends plain(tanh) {}
export class SiLU extends plain(silu) {}
export class Mish extends plain(mish) {}
export class SELU extends plain(selu) {}
export class Hardsigmoid extends plain(hardsigmoid) {}
export class Hardswish extends plain(hardswish) {}
export class LogSigmoid extends plain(logsigmoid) {}
export class Softsign extends plain(softsign) {}
export class Tanhshrink extends plain(tanhshrink) {}
/** alpha, 1 by default. */
export class ELU extends withNumber(elu, 1) {}
/** alpha, 1 by default. */
export class CELU extends withNumber(celu, 1) {}
/** The negative slope, 0.01 by default. */
export class LeakyReLU extends withNumber(leakyRelu, 0.01) {}
/** lambda, 0.5 by default. */
export class Hardshrink extends withNumber(hardshrink, 0.5) {}
/** lambda, 0.5 by default. */
export class Softshrink extends withNumber(softshrink, 0.5) {}
/** The dimension, the last by default. */
export class GLU extends withNumber(glu, -1) {}
/** The dimension, the last by default. */
export class Softmax extends withNumber(softmax, -1) {}
/** The dimension, the last by default. */
export class LogSoftmax extends withNumber(logSoftmax, -1) {}
/** The dimension, the last by default. */
export class Softmin extends withNumber(softmin, -1) {}
/** The least and the largest value, -1 and 1 by default. */
export class Hardtanh extends withNumbers(hardtanh, [-1, 1]) {}
/** beta and the threshold, 1 and 20 by default. */
export class Softplus extends withNumbers(softplus, [1, 20]) {}

export class GELU extends Module {
  constructor(readonly approximate: "none" | "tanh" = "none") {
    super();
  }

  forward(input: Tensor): Tensor {
    return gelu(input, this.approximate);
  }
}

/** x where x > limit, value elsewhere. */
export class Threshold extends Module {
  constructor(
    readonly limit: number,
    readonly value: number,
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return threshold(input, this.limit, this.value);
  }
}

/** Leaky ReLU with learnt slopes: one, or one for each channel. */
export class PReLU extends Module {
  /** [numParameters] */
  readonly weight: Tensor;

  constructor(numParameters = 1, init = 0.25) {
    super();
    this.weight = constant_(emptyParameter(numParameters), init);
  }

  forward(input: Tensor): Tensor {
    return prelu(input, this.weight);
  }
}

/** Leaky ReLU whose slopes training draws evenly between two bounds. */
export class RReLU extends Module {
  constructor(
    readonly lower = 1 / 8,
    readonly upper = 1 / 3,
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    const { lower, upper } = this;
    if (!this.training) return rrelu(input, lower, upper);
    return rrelu(
      input,
      lower,
      upper,
      drawUniform(input.shape)
        .mul(upper - lower)
        .add(lower),
    );
  }
}

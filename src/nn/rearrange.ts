import {
  fold,
  type InterpolateOptions,
  interpolate,
  type PaddingMode,
  pad,
  pixelShuffle,
  pixelUnshuffle,
  type SlidingWindowOptions,
  type Tensor,
  unfold,
} from "../tensor/index";
import { Module, type ModuleClass } from "./module";

/** Resizes spatial dimensions. */
export class Upsample extends Module {
  constructor(readonly options: InterpolateOptions) {
    super();
  }

  forward(input: Tensor): Tensor {
    return interpolate(input, this.options);
  }
}

export class PixelShuffle extends Module {
  constructor(readonly upscaleFactor: number) {
    super();
  }

  forward(input: Tensor): Tensor {
    return pixelShuffle(input, this.upscaleFactor);
  }
}

export class PixelUnshuffle extends Module {
  constructor(readonly downscaleFactor: number) {
    super();
  }

  forward(input: Tensor): Tensor {
    return pixelUnshuffle(input, this.downscaleFactor);
  }
}

/** Windows as columns: [N, C, H, W] to [N, C kH kW, places]. */
export class Unfold extends Module {
  constructor(
    readonly kernelSize: number | readonly number[],
    readonly options: SlidingWindowOptions = {},
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return unfold(input, this.kernelSize, this.options);
  }
}

/** The sum of windows at their places: [N, C kH kW, places] to [N, C, H, W]. */
export class Fold extends Module {
  constructor(
    readonly outputSize: number | readonly number[],
    readonly kernelSize: number | readonly number[],
    readonly options: SlidingWindowOptions = {},
  ) {
    super();
  }

  forward(input: Tensor): Tensor {
    return fold(input, this.outputSize, this.kernelSize, this.options);
  }
}

/** Pads in so many dimensions, by one number on all sides or by two for each dimension, the last first. */
const padding = (
  mode: PaddingMode,
  dims: number,
): ModuleClass<[padding: number | readonly number[], value?: number], [input: Tensor], { readonly value: number }> =>
  class extends Module {
    constructor(
      readonly padding: number | readonly number[],
      readonly value = 0,
    ) {
      super();
    }

    forward(input: Tensor): Tensor {
      const sides = typeof this.padding === "number" ? new Array<number>(2 * dims).fill(this.padding) : this.padding;
      return pad(input, sides, mode, this.value);
    }
  };

export class ConstantPad1d extends padding("constant", 1) {}
export class ConstantPad2d extends padding("constant", 2) {}
export class ZeroPad2d extends padding("constant", 2) {}
export class ReflectionPad1d extends padding("reflect", 1) {}
export class ReflectionPad2d extends padding("reflect", 2) {}
export class ReplicationPad1d extends padding("replicate", 1) {}
export class ReplicationPad2d extends padding("replicate", 2) {}
export class CircularPad1d extends padding("circular", 1) {}
export class CircularPad2d extends padding("circular", 2) {}

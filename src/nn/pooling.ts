import {
  type AdaptiveSize,
  type AvgPool1dOptions,
  type AvgPool2dOptions,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  avgPool1d,
  avgPool2d,
  lpPool1d,
  lpPool2d,
  type MaxPool1dOptions,
  type MaxPool2dOptions,
  type MaxUnpoolOptions,
  maxPool1d,
  maxPool2d,
  maxUnpool1d,
  maxUnpool2d,
  type PowerPoolOptions,
  type Tensor,
} from "../tensor/index";
import { Module, type ModuleClass } from "./module";

type Size = number | readonly [number, number];

/** The module of a pool with a window. */
const windowed = <Kernel extends Size, Options extends object>(
  of: (input: Tensor, kernelSize: Kernel, options?: Options) => Tensor,
): ModuleClass<[kernelSize: Kernel, options?: Options], [input: Tensor], { readonly kernelSize: Kernel }> =>
  class extends Module {
    constructor(
      readonly kernelSize: Kernel,
      readonly options?: Options,
    ) {
      super();
    }

    forward(input: Tensor): Tensor {
      return of(input, this.kernelSize, this.options);
    }
  };

/** The module of a pool to a size. */
const adaptive = <OutputSize extends AdaptiveSize>(
  of: (input: Tensor, size: OutputSize) => Tensor,
): ModuleClass<[outputSize: OutputSize], [input: Tensor], { readonly outputSize: OutputSize }> =>
  class extends Module {
    constructor(readonly outputSize: OutputSize) {
      super();
    }

    forward(input: Tensor): Tensor {
      return of(input, this.outputSize);
    }
  };

export class MaxPool1d extends windowed<number, MaxPool1dOptions>(maxPool1d) {}
export class MaxPool2d extends windowed<Size, MaxPool2dOptions>(maxPool2d) {}
export class AvgPool1d extends windowed<number, AvgPool1dOptions>(avgPool1d) {}
export class AvgPool2d extends windowed<Size, AvgPool2dOptions>(avgPool2d) {}
export class AdaptiveAvgPool1d extends adaptive<number>(adaptiveAvgPool1d) {}
export class AdaptiveAvgPool2d extends adaptive<AdaptiveSize>(adaptiveAvgPool2d) {}
export class AdaptiveMaxPool1d extends adaptive<number>(adaptiveMaxPool1d) {}
export class AdaptiveMaxPool2d extends adaptive<AdaptiveSize>(adaptiveMaxPool2d) {}

/** The module of a pool by a norm's power. */
const byPower = <Kernel extends Size>(
  of: (input: Tensor, normType: number, kernelSize: Kernel, options?: PowerPoolOptions<Kernel>) => Tensor,
): ModuleClass<
  [normType: number, kernelSize: Kernel, options?: PowerPoolOptions<Kernel>],
  [input: Tensor],
  { readonly normType: number; readonly kernelSize: Kernel }
> =>
  class extends Module {
    constructor(
      readonly normType: number,
      readonly kernelSize: Kernel,
      readonly options?: PowerPoolOptions<Kernel>,
    ) {
      super();
    }

    forward(input: Tensor): Tensor {
      return of(input, this.normType, this.kernelSize, this.options);
    }
  };

export class LPPool1d extends byPower<number>(lpPool1d) {}
export class LPPool2d extends byPower<Size>(lpPool2d) {}

/** The module of what puts a max pool's results back to their places. */
const unpooling = <Kernel extends Size>(
  of: (input: Tensor, indices: Tensor, kernelSize: Kernel, options?: MaxUnpoolOptions<Kernel>) => Tensor,
): ModuleClass<
  [kernelSize: Kernel, options?: MaxUnpoolOptions<Kernel>],
  [input: Tensor, indices: Tensor],
  { readonly kernelSize: Kernel }
> =>
  class extends Module {
    constructor(
      readonly kernelSize: Kernel,
      readonly options?: MaxUnpoolOptions<Kernel>,
    ) {
      super();
    }

    forward(input: Tensor, indices: Tensor): Tensor {
      return of(input, indices, this.kernelSize, this.options);
    }
  };

export class MaxUnpool1d extends unpooling<number>(maxUnpool1d) {}
export class MaxUnpool2d extends unpooling<Size>(maxUnpool2d) {}

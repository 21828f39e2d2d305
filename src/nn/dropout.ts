import { add, expand, ge, mul, type Shape, type Tensor, where } from "../tensor/index";
import { Module, type ModuleClass } from "./module";
import { drawUniform } from "./randomness";

function checkProbability(p: number): void {
  if (!(p >= 0 && p <= 1)) throw new Error(`Dropout's probability is ${p}; expected a number from 0 to 1.`);
}

/** bool of `shape`: false with the probability p. */
const kept = (shape: Shape, p: number): Tensor => ge(drawUniform(shape), p);

/** The shape of one draw for each channel, of [N, C, ...]. */
const perChannel = ({ shape }: Tensor): number[] => shape.map((size, d) => (d < 2 ? size : 1));

/** Zeroes elements with the probability p, and scales the others such that the mean stays. */
export function dropout(input: Tensor, p = 0.5, training = true, shape: Shape = input.shape): Tensor {
  checkProbability(p);
  if (!training || p === 0) return input;
  if (p === 1) return mul(input, 0);
  return where(expand(kept(shape, p), input.shape), mul(input, 1 / (1 - p)), 0);
}

/** Dropout of whole channels of [N, C, ...]. */
export const featureDropout = (input: Tensor, p = 0.5, training = true): Tensor =>
  dropout(input, p, training, perChannel(input));

/** -alpha scale of SELU: what its outputs tend to for very negative inputs. */
const saturation = -1.7580993408473766;

/** Sets elements to SELU's saturation with the probability p, and keeps mean and variance (Klambauer et al. 2017). */
export function alphaDropout(input: Tensor, p = 0.5, training = true, shape: Shape = input.shape): Tensor {
  checkProbability(p);
  if (!training || p === 0) return input;
  if (p === 1) return mul(input, 0);
  const scale = 1 / Math.sqrt((1 - p) * (1 + p * saturation ** 2));
  const shift = -scale * saturation * p;
  return add(mul(where(expand(kept(shape, p), input.shape), input, saturation), scale), shift);
}

/** Alpha dropout of whole channels of [N, C, ...]. */
export const featureAlphaDropout = (input: Tensor, p = 0.5, training = true): Tensor =>
  alphaDropout(input, p, training, perChannel(input));

const dropoutModule = (
  of: (input: Tensor, p: number, training: boolean) => Tensor,
): ModuleClass<[p?: number], [input: Tensor], { readonly p: number }> =>
  class extends Module {
    constructor(readonly p = 0.5) {
      super();
      checkProbability(p);
    }

    forward(input: Tensor): Tensor {
      return of(input, this.p, this.training);
    }
  };

export class Dropout extends dropoutModule(dropout) {}
/** Drops whole channels of [N, C, L]. */
export class Dropout1d extends dropoutModule(featureDropout) {}
/** Drops whole channels of [N, C, H, W]. */
export class Dropout2d extends dropoutModule(featureDropout) {}
export class AlphaDropout extends dropoutModule(alphaDropout) {}
export class FeatureAlphaDropout extends dropoutModule(featureAlphaDropout) {}

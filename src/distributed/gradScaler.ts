import { all, copy_, isfinite, mul, noGrad, type Tensor } from "../tensor";
import { getProcessGroup, isInitialized } from "./defaultGroup";
import type { ProcessGroup } from "./processGroup";

export interface GradScalerOptions {
  /** Default: 65536. */
  readonly initScale?: number;
  /** What the scale is multiplied with after `growthInterval` steps without an infinity. Default: 2. */
  readonly growthFactor?: number;
  /** What it is multiplied with after a step with one. Default: 0.5. */
  readonly backoffFactor?: number;
  /** Default: 2000. */
  readonly growthInterval?: number;
  /** False makes everything pass through as it is. Default: true. */
  readonly enabled?: boolean;
  /** Whose ranks agree. Default: the group of initProcessGroup; without one this rank decides alone. */
  readonly processGroup?: ProcessGroup | null;
}

/** What a scaler needs of an optimizer. */
export interface ScaledOptimizer {
  readonly groups: readonly { readonly parameters: readonly Tensor[] }[];
  step(): void | Promise<void>;
}

export interface GradScalerState {
  readonly scale: number;
  readonly growthTracker: number;
}

/**
 * Scales losses so that small gradients survive low precision, as torch's GradScaler, and lets all ranks agree: an infinity or a NaN in
 * anybody's gradients makes all skip the step and all lower the scale.
 *
 *     scaler.scale(loss).backward();
 *     await model.averageGradients();
 *     await scaler.step(optimizer);
 *     scaler.update();
 */
export class GradScaler {
  readonly #options: Required<Omit<GradScalerOptions, "initScale" | "processGroup">>;
  readonly #processGroup: ProcessGroup | null | undefined;
  #scale: number;
  /** Steps without an infinity since the scale last changed. */
  #growthTracker = 0;
  /** Of this step, by optimizer: whether a gradient of any rank wasn't finite. */
  readonly #found = new Map<ScaledOptimizer, boolean>();

  constructor(options: GradScalerOptions = {}) {
    const {
      initScale = 65_536,
      growthFactor = 2,
      backoffFactor = 0.5,
      growthInterval = 2000,
      enabled = true,
    } = options;
    const demand = (name: string, value: number, holds: boolean, range: string) => {
      if (!holds) throw new RangeError(`GradScaler: ${name} is ${value}; it must be ${range}.`);
    };
    demand("initScale", initScale, initScale > 0 && Number.isFinite(initScale), "a number above 0");
    demand("growthFactor", growthFactor, growthFactor > 1, "above 1");
    demand("backoffFactor", backoffFactor, backoffFactor > 0 && backoffFactor < 1, "between 0 and 1");
    demand(
      "growthInterval",
      growthInterval,
      Number.isInteger(growthInterval) && growthInterval > 0,
      "an integer from 1",
    );
    this.#options = { growthFactor, backoffFactor, growthInterval, enabled };
    this.#processGroup = options.processGroup;
    this.#scale = initScale;
  }

  /** Multiplies a loss with the scale. */
  scale(loss: Tensor): Tensor {
    return this.#options.enabled ? mul(loss, this.#scale) : loss;
  }

  /**
   * Divides the gradients of an optimizer's parameters by the scale, for what has to see them as they are, such as clipping. `step` does it
   * otherwise.
   */
  async unscale_(optimizer: ScaledOptimizer): Promise<void> {
    if (!this.#options.enabled) return;
    if (this.#found.has(optimizer))
      throw new Error(
        "GradScaler: the gradients were unscaled already since the last update(); call update() once a step.",
      );
    const gradients = optimizer.groups.flatMap(({ parameters }) => parameters.flatMap(({ grad }) => grad ?? []));
    const areFinite = noGrad(() =>
      gradients.map((gradient) => {
        copy_(gradient, mul(gradient, 1 / this.#scale));
        return all(isfinite(gradient));
      }),
    );
    const found = Float32Array.of((await Promise.all(areFinite.map((one) => one.item()))).includes(0) ? 1 : 0);
    const group = this.#processGroup === undefined && isInitialized() ? getProcessGroup() : this.#processGroup;
    await group?.allReduce(found, "max").wait();
    this.#found.set(optimizer, found[0] === 1);
  }

  /**
   * Unscales the gradients if need be, and takes the optimizer's step where all are finite on all ranks.
   * @returns whether the step was taken.
   */
  async step(optimizer: ScaledOptimizer): Promise<boolean> {
    if (this.#options.enabled && !this.#found.has(optimizer)) await this.unscale_(optimizer);
    if (this.#found.get(optimizer) === true) return false;
    await optimizer.step();
    return true;
  }

  /** Ends a step: lowers the scale if anything wasn't finite, raises it after many steps in which all was. */
  update(): void {
    const { enabled, growthFactor, backoffFactor, growthInterval } = this.#options;
    if (!enabled) return;
    if (this.#found.size === 0) throw new Error("GradScaler: update() was called before step() or unscale_().");
    const found = [...this.#found.values()].includes(true);
    this.#found.clear();
    this.#growthTracker = found ? 0 : this.#growthTracker + 1;
    if (found) this.#scale *= backoffFactor;
    else if (this.#growthTracker === growthInterval) {
      // A scale that float32 can't hold would make every loss infinite.
      if (this.#scale * growthFactor <= 3.4e38) this.#scale *= growthFactor;
      this.#growthTracker = 0;
    }
  }

  getScale(): number {
    return this.#options.enabled ? this.#scale : 1;
  }

  stateDict(): GradScalerState {
    return { scale: this.#scale, growthTracker: this.#growthTracker };
  }

  loadStateDict({ scale, growthTracker }: GradScalerState): void {
    if (!(scale > 0) || !Number.isInteger(growthTracker) || growthTracker < 0)
      throw new RangeError(`GradScaler: a state of scale ${scale} after ${growthTracker} steps can't be.`);
    this.#scale = scale;
    this.#growthTracker = growthTracker;
  }
}

import type { Optimizer } from "./optimizer";
import {
  type ConstantOptions,
  type CosineOptions,
  constantSchedule,
  cosineSchedule,
  exponentialSchedule,
  type LinearOptions,
  lambdaSchedule,
  linearSchedule,
  type MultiStepOptions,
  multiStepSchedule,
  type OneCycleOptions,
  oneCycleMomentum,
  oneCycleSchedule,
  type PolynomialOptions,
  polynomialSchedule,
  type Schedule,
  type StepOptions,
  sequentialSchedule,
  stepSchedule,
  type WarmRestartsOptions,
  warmRestartsSchedule,
} from "./schedule";
import { momentumOf } from "./spec";

/** What a schedule sets: learning rates, and some the momentum, of an optimizer's groups. */
type Scheduled = Pick<Optimizer, "groups">;

/** Sets an optimizer's learning rates by a schedule: those of step 0 at once, and the next at each `step()`. */
export class LRScheduler {
  readonly #base: readonly number[];
  #step = 0;

  constructor(
    readonly optimizer: Scheduled,
    readonly schedule: Schedule,
    /** The momentum, or Adam's beta1, at each step; null where it stays. */
    readonly momentum: ((step: number) => number) | null = null,
  ) {
    this.#base = optimizer.groups.map(({ spec }) => spec.learningRate);
    this.#set();
  }

  /** Goes to the next step; call it after the optimizer's. */
  step(): void {
    this.#step += 1;
    this.#set();
  }

  /** The learning rate of each group. */
  getLastLr(): number[] {
    return this.optimizer.groups.map(({ learningRate }) => learningRate);
  }

  stateDict(): { readonly step: number } {
    return { step: this.#step };
  }

  loadStateDict({ step }: { readonly step: number }): void {
    this.#step = step;
    this.#set();
  }

  #set(): void {
    for (const [index, group] of this.optimizer.groups.entries()) {
      group.learningRate = this.schedule(this.#base[index] ?? 0, this.#step);
      if (this.momentum) group.momentum = this.momentum(this.#step);
    }
  }
}

export class LambdaLR extends LRScheduler {
  constructor(optimizer: Scheduled, factor: (step: number) => number) {
    super(optimizer, lambdaSchedule(factor));
  }
}

export class StepLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: StepOptions) {
    super(optimizer, stepSchedule(options));
  }
}

export class MultiStepLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: MultiStepOptions) {
    super(optimizer, multiStepSchedule(options));
  }
}

export class ConstantLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: ConstantOptions = {}) {
    super(optimizer, constantSchedule(options));
  }
}

export class LinearLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: LinearOptions = {}) {
    super(optimizer, linearSchedule(options));
  }
}

export class ExponentialLR extends LRScheduler {
  constructor(optimizer: Scheduled, gamma: number) {
    super(optimizer, exponentialSchedule(gamma));
  }
}

export class PolynomialLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: PolynomialOptions = {}) {
    super(optimizer, polynomialSchedule(options));
  }
}

export class CosineAnnealingLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: CosineOptions) {
    super(optimizer, cosineSchedule(options));
  }
}

export class CosineAnnealingWarmRestarts extends LRScheduler {
  constructor(optimizer: Scheduled, options: WarmRestartsOptions) {
    super(optimizer, warmRestartsSchedule(options));
  }
}

/** Up and down once, and the momentum (Adam's beta1) down and up, unless `cycleMomentum` is false. */
export class OneCycleLR extends LRScheduler {
  /** @throws Error where the momentum is to be cycled and an optimizer has none. */
  constructor(
    optimizer: Scheduled,
    { cycleMomentum = true, ...options }: OneCycleOptions & { readonly cycleMomentum?: boolean },
  ) {
    const without = cycleMomentum ? optimizer.groups.find(({ spec }) => momentumOf(spec) === null) : undefined;
    if (without)
      throw new Error(
        `OneCycleLR cycles the momentum, and the optimizer ${without.spec.name} has none here: give it one, or OneCycleLR ` +
          "cycleMomentum: false.",
      );
    super(optimizer, oneCycleSchedule(options), cycleMomentum ? oneCycleMomentum(options) : null);
  }
}

/** Runs the schedules of schedulers one after the other; the schedulers themselves aren't to be stepped. */
export class SequentialLR extends LRScheduler {
  constructor(optimizer: Scheduled, schedulers: readonly LRScheduler[], milestones: readonly number[]) {
    super(
      optimizer,
      sequentialSchedule(
        schedulers.map(({ schedule }) => schedule),
        milestones,
      ),
    );
  }
}

export interface PlateauOptions {
  /** Whether a smaller metric is better. Default: "min". */
  readonly mode?: "min" | "max";
  /** Default: 0.1. */
  readonly factor?: number;
  /** How many steps without an improvement are borne. Default: 10. */
  readonly patience?: number;
  /** By how much better counts as an improvement. Default: 1e-4. */
  readonly threshold?: number;
  /** Whether the threshold is a part of the best, or a difference. Default: "rel". */
  readonly thresholdMode?: "rel" | "abs";
  /** Steps after a reduction in which none counts as bad. Default: 0. */
  readonly cooldown?: number;
  /** Default: 0. */
  readonly minLearningRate?: number;
  /** Smaller changes aren't made. Default: 1e-8. */
  readonly eps?: number;
}

/** Reduces the learning rates when a metric stops improving. */
export class ReduceLROnPlateau {
  #best: number;
  #badSteps = 0;
  #coolingSteps = 0;

  constructor(
    readonly optimizer: Scheduled,
    readonly options: PlateauOptions = {},
  ) {
    this.#best = options.mode === "max" ? -Infinity : Infinity;
  }

  step(metric: number): void {
    const { patience = 10, cooldown = 0, factor = 0.1, minLearningRate = 0, eps = 1e-8 } = this.options;
    if (this.#isBetter(metric)) {
      this.#best = metric;
      this.#badSteps = 0;
    } else this.#badSteps += 1;
    if (this.#coolingSteps > 0) {
      this.#coolingSteps -= 1;
      this.#badSteps = 0;
    }
    if (this.#badSteps <= patience) return;
    for (const group of this.optimizer.groups) {
      const reduced = Math.max(group.learningRate * factor, minLearningRate);
      if (group.learningRate - reduced > eps) group.learningRate = reduced;
    }
    this.#coolingSteps = cooldown;
    this.#badSteps = 0;
  }

  /** The learning rate of each group. */
  getLastLr(): number[] {
    return this.optimizer.groups.map(({ learningRate }) => learningRate);
  }

  stateDict() {
    return { best: this.#best, badSteps: this.#badSteps, coolingSteps: this.#coolingSteps };
  }

  loadStateDict({ best, badSteps, coolingSteps }: ReturnType<ReduceLROnPlateau["stateDict"]>): void {
    this.#best = best;
    this.#badSteps = badSteps;
    this.#coolingSteps = coolingSteps;
  }

  #isBetter(metric: number): boolean {
    const { mode = "min", threshold = 1e-4, thresholdMode = "rel" } = this.options;
    const sign = mode === "min" ? -1 : 1;
    const bar = thresholdMode === "rel" ? this.#best * (1 + sign * threshold) : this.#best + sign * threshold;
    return mode === "min" ? metric < bar : metric > bar;
  }
}

import { cosine, integerPower, power } from "./elementary";

/**
 * A learning rate over time: a function of the base learning rate and the step, of which the first is 0. It has no state,
 * and the same bits on every engine, so that members who join later compute what the others do.
 */
export type Schedule = (baseLearningRate: number, step: number) => number;

/** The base learning rate times a function of the step. */
export const lambdaSchedule =
  (factor: (step: number) => number): Schedule =>
  (base, step) =>
    base * factor(step);

export interface StepOptions {
  readonly stepSize: number;
  /** Default: 0.1. */
  readonly gamma?: number;
}

/** Times gamma every `stepSize` steps. */
export const stepSchedule =
  ({ stepSize, gamma = 0.1 }: StepOptions): Schedule =>
  (base, step) =>
    base * integerPower(gamma, Math.floor(step / stepSize));

export interface MultiStepOptions {
  readonly milestones: readonly number[];
  /** Default: 0.1. */
  readonly gamma?: number;
}

/** Times gamma at each milestone. */
export const multiStepSchedule =
  ({ milestones, gamma = 0.1 }: MultiStepOptions): Schedule =>
  (base, step) =>
    base * integerPower(gamma, milestones.filter((milestone) => milestone <= step).length);

export interface ConstantOptions {
  /** Default: 1 / 3. */
  readonly factor?: number;
  /** How many steps it holds. Default: 5. */
  readonly totalIters?: number;
}

/** Times a factor for the first steps. */
export const constantSchedule =
  ({ factor = 1 / 3, totalIters = 5 }: ConstantOptions = {}): Schedule =>
  (base, step) =>
    step < totalIters ? base * factor : base;

export interface LinearOptions {
  /** Default: 1 / 3. */
  readonly startFactor?: number;
  /** Default: 1. */
  readonly endFactor?: number;
  /** How many steps the way takes. Default: 5. */
  readonly totalIters?: number;
}

/** From one factor to another in equal steps: a warm-up. */
export const linearSchedule =
  ({ startFactor = 1 / 3, endFactor = 1, totalIters = 5 }: LinearOptions = {}): Schedule =>
  (base, step) =>
    base * (startFactor + ((endFactor - startFactor) * Math.min(step, totalIters)) / totalIters);

/** Times gamma each step. */
export const exponentialSchedule =
  (gamma: number): Schedule =>
  (base, step) =>
    base * integerPower(gamma, step);

export interface PolynomialOptions {
  /** Default: 5. */
  readonly totalIters?: number;
  /** Default: 1. */
  readonly power?: number;
}

/** Down to 0 along a power of what is left of the way. */
export const polynomialSchedule =
  ({ totalIters = 5, power: exponent = 1 }: PolynomialOptions = {}): Schedule =>
  (base, step) =>
    step >= totalIters ? 0 : base * power(1 - step / totalIters, exponent);

export interface CosineOptions {
  /** Steps from the base learning rate to the least. */
  readonly tMax: number;
  /** The least learning rate. Default: 0. */
  readonly etaMin?: number;
}

const annealed = (from: number, to: number, part: number) => to + ((from - to) * (1 + cosine(Math.PI * part))) / 2;

/** Down along half a cosine, and up again after that. */
export const cosineSchedule =
  ({ tMax, etaMin = 0 }: CosineOptions): Schedule =>
  (base, step) =>
    annealed(base, etaMin, step / tMax);

export interface WarmRestartsOptions {
  /** Steps until the first restart. */
  readonly t0: number;
  /** By what each period is longer than the one before; an integer. Default: 1. */
  readonly tMult?: number;
  /** The least learning rate. Default: 0. */
  readonly etaMin?: number;
}

/** Down along half a cosine, again and again (Loshchilov and Hutter 2017). */
export const warmRestartsSchedule =
  ({ t0, tMult = 1, etaMin = 0 }: WarmRestartsOptions): Schedule =>
  (base, step) => {
    let period = t0;
    let at = step;
    if (tMult === 1) at %= t0;
    else for (; at >= period; period *= tMult) at -= period;
    return annealed(base, etaMin, at / period);
  };

export interface OneCycleOptions {
  readonly maxLearningRate: number;
  readonly totalSteps: number;
  /** The part of the steps that the learning rate rises. Default: 0.3. */
  readonly pctStart?: number;
  /** Default: "cos". */
  readonly annealStrategy?: "cos" | "linear";
  /** By what the first learning rate is below the highest. Default: 25. */
  readonly divFactor?: number;
  /** By what the last is below the first. Default: 1e4. */
  readonly finalDivFactor?: number;
  /** Whether it falls to the first as it rose, and then to the last. Default: false. */
  readonly threePhase?: boolean;
}

/** Up and down once (Smith and Topin 2019). The momentum stays as it is. */
export function oneCycleSchedule({
  maxLearningRate: highest,
  totalSteps,
  pctStart = 0.3,
  annealStrategy = "cos",
  divFactor = 25,
  finalDivFactor = 1e4,
  threePhase = false,
}: OneCycleOptions): Schedule {
  const first = highest / divFactor;
  const last = first / finalDivFactor;
  const rise = pctStart * totalSteps - 1;
  const phases = threePhase
    ? [
        { end: rise, from: first, to: highest },
        { end: 2 * pctStart * totalSteps - 2, from: highest, to: first },
        { end: totalSteps - 1, from: first, to: last },
      ]
    : [
        { end: rise, from: first, to: highest },
        { end: totalSteps - 1, from: highest, to: last },
      ];
  const between = (from: number, to: number, part: number) =>
    annealStrategy === "cos" ? annealed(from, to, part) : from + (to - from) * part;
  return (_, step) => {
    if (step >= totalSteps)
      throw new Error(`The one-cycle schedule has ${totalSteps} steps; step ${step} is behind its end.`);
    let start = 0;
    for (const { end, from, to } of phases) {
      if (step <= end) return between(from, to, (step - start) / (end - start));
      start = end;
    }
    return last;
  };
}

/** One schedule after the other, each starting at its milestone with step 0. */
export function sequentialSchedule(schedules: readonly Schedule[], milestones: readonly number[]): Schedule {
  if (schedules.length !== milestones.length + 1)
    throw new Error(
      `The sequence has ${schedules.length} schedules and ${milestones.length} milestones; expected one milestone between each two.`,
    );
  return (base, step) => {
    const at = milestones.filter((milestone) => milestone <= step).length;
    return schedules[at]?.(base, step - (milestones[at - 1] ?? 0)) ?? base;
  };
}

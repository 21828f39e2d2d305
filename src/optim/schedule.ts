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
  /** The momentum where the learning rate is highest. Default: 0.85. */
  readonly baseMomentum?: number;
  /** The momentum at the beginning and the end. Default: 0.95. */
  readonly maxMomentum?: number;
}

/** From one of three levels to another until a step. */
interface CyclePhase {
  readonly end: number;
  readonly from: CycleLevel;
  readonly to: CycleLevel;
}
type CycleLevel = "first" | "highest" | "last";

/** The value at each step of a cycle through its levels. */
function cycle(options: OneCycleOptions, levels: Readonly<Record<CycleLevel, number>>): (step: number) => number {
  const { totalSteps, pctStart = 0.3, annealStrategy = "cos", threePhase = false } = options;
  const rise: CyclePhase = { end: pctStart * totalSteps - 1, from: "first", to: "highest" };
  const phases: readonly CyclePhase[] = threePhase
    ? [
        rise,
        { end: 2 * pctStart * totalSteps - 2, from: "highest", to: "first" },
        { end: totalSteps - 1, from: "first", to: "last" },
      ]
    : [rise, { end: totalSteps - 1, from: "highest", to: "last" }];
  const between = (from: number, to: number, part: number) =>
    annealStrategy === "cos" ? annealed(from, to, part) : from + (to - from) * part;
  return (step) => {
    if (step >= totalSteps)
      throw new Error(`The one-cycle schedule has ${totalSteps} steps; step ${step} is behind its end.`);
    let start = 0;
    for (const { end, from, to } of phases) {
      if (step <= end) return between(levels[from], levels[to], (step - start) / (end - start));
      start = end;
    }
    return levels.last;
  };
}

/** Up and down once (Smith and Topin 2019). */
export function oneCycleSchedule(options: OneCycleOptions): Schedule {
  const { maxLearningRate: highest, divFactor = 25, finalDivFactor = 1e4 } = options;
  const first = highest / divFactor;
  const learningRate = cycle(options, { first, highest, last: first / finalDivFactor });
  return (_, step) => learningRate(step);
}

/** The momentum of a one-cycle schedule: low while the learning rate is high. */
export function oneCycleMomentum(options: OneCycleOptions): (step: number) => number {
  const { baseMomentum = 0.85, maxMomentum = 0.95 } = options;
  return cycle(options, { first: maxMomentum, highest: baseMomentum, last: maxMomentum });
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

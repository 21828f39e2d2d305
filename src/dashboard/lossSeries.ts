import { decimate } from "./decimate";

/** Part of the smoothed curve that the past keeps at each step. */
const memory = 0.85;

export interface LossCurve {
  /** Steps, counted from 1. */
  readonly steps: number[];
  readonly raw: number[];
  readonly smoothed: number[];
}

/** Every step's loss with its exponential moving average (weights normalised, so that the beginning isn't pulled to 0). */
export class LossSeries {
  length = 0;
  #raw = new Float64Array(1024);
  #sum = new Float64Array(1024);
  #weight = new Float64Array(1024);

  /** Takes the losses of the steps from `from` on, over what was there; steps never heard of stay NaN. */
  add(from: number, losses: readonly number[]): void {
    this.#reserve(from + losses.length);
    if (losses.length === 0) return;
    for (let step = this.length; step < from; step += 1) this.#put(step, Number.NaN);
    for (let i = 0; i < losses.length; i += 1) this.#put(from + i, losses[i]!);
    this.length = from + losses.length;
  }

  /** The loss of a step, or NaN. */
  raw(step: number): number {
    return step >= 0 && step < this.length ? this.#raw[step]! : Number.NaN;
  }

  /** The smoothed loss after a step, or NaN before the first known one. */
  smoothed(step: number): number {
    return step >= 0 && step < this.length ? this.#sum[step]! / this.#weight[step]! : Number.NaN;
  }

  /** The curve in at most about `limit` points. */
  curve(limit: number): LossCurve {
    const chosen = decimate(this.#raw, this.length, limit);
    return {
      steps: chosen.map((step) => step + 1),
      raw: chosen.map((step) => this.#raw[step]!),
      smoothed: chosen.map((step) => this.smoothed(step)),
    };
  }

  #put(step: number, loss: number): void {
    const sum = step > 0 ? this.#sum[step - 1]! : 0;
    const weight = step > 0 ? this.#weight[step - 1]! : 0;
    const known = Number.isFinite(loss);
    this.#raw[step] = loss;
    this.#sum[step] = known ? memory * sum + (1 - memory) * loss : sum;
    this.#weight[step] = known ? memory * weight + (1 - memory) : weight;
  }

  #reserve(length: number): void {
    if (length <= this.#raw.length) return;
    const grow = (old: Float64Array<ArrayBuffer>) => {
      const larger = new Float64Array(Math.max(length, old.length * 2));
      larger.set(old);
      return larger;
    };
    this.#raw = grow(this.#raw);
    this.#sum = grow(this.#sum);
    this.#weight = grow(this.#weight);
  }
}

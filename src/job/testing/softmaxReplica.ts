import type { Clock } from "../../base/clock";
import { seededRandom } from "../../base/seededRandom";
import { OffloadedOptimizer } from "../../optim/offloaded";
import { allFinite } from "../gradientSlot";
import {
  type Evaluation,
  type LocalResult,
  metricSlotCount,
  metricSlots,
  type ParameterLayout,
  type Prediction,
  type Replica,
  type TrainingState,
} from "../replica";
import type { JobSpec } from "../spec";

const features = 7;
const classes = 3;
export const softmaxElements = features * classes + classes;

export interface SoftmaxOptions {
  readonly spec: JobSpec;
  readonly clock: Clock;
  /** Float32 elements of the flat weights, the rest of which is padding. */
  readonly elements?: number;
  /** How long so many samples take to compute, in milliseconds. */
  readonly compute?: (samples: number) => number;
  /** What becomes of a step's gradients before they are handed out. */
  readonly spoil?: (gradients: Float32Array, samples: Uint32Array) => void;
}

/**
 * Softmax regression on generated data, on the CPU in float64, rounded to float32 where it is handed out. Exact enough
 * that the order of summation shows in the last bits only.
 */
export class SoftmaxReplica implements Replica {
  readonly layout: ParameterLayout;
  readonly sampleCount = 200;
  readonly validationCount = 50;
  readonly lost: Promise<string>;
  lose: (sentence: string) => void = () => {};
  destroyed = false;
  /** The samples of the latest gradients. */
  latest = new Uint32Array(0);
  readonly #options: SoftmaxOptions;
  readonly #inputs: Float64Array;
  readonly #labels: Uint8Array;
  readonly #weights: Float32Array<ArrayBuffer>;
  readonly #gradients: Float32Array<ArrayBuffer>;
  readonly #optimizer: OffloadedOptimizer;
  /** Closed by gradients that aren't finite, until the trainer was told and takes another step. */
  #gate: "open" | "closed" | "told" = "open";
  /** Calls must not overlap, so one that does is a mistake of the trainer. */
  #busy = false;

  constructor(options: SoftmaxOptions) {
    this.#options = options;
    const length = options.elements ?? softmaxElements;
    this.layout = {
      entries: [
        { name: "weight", shape: [classes, features], offset: 0, length: features * classes },
        { name: "bias", shape: [classes], offset: features * classes, length: classes },
      ],
      length,
    };
    this.lost = new Promise((resolve) => {
      this.lose = resolve;
    });
    const random = seededRandom(99);
    const count = this.sampleCount + this.validationCount;
    this.#inputs = Float64Array.from({ length: count * features }, () => random() * 2 - 1);
    this.#labels = Uint8Array.from({ length: count }, (_, sample) => {
      const scores = Array.from({ length: classes }, (_, label) => {
        let score = 0;
        for (let feature = 0; feature < features; feature += 1)
          score += Math.sin(label * 7 + feature * 3) * this.#inputs[sample * features + feature]!;
        return score + 0.3 * random();
      });
      return scores.indexOf(Math.max(...scores));
    });
    const initial = seededRandom(options.spec.seed);
    this.#weights = new Float32Array(length);
    for (let index = 0; index < softmaxElements; index += 1) this.#weights[index] = (initial() - 0.5) / 4;
    this.#gradients = new Float32Array(length + metricSlotCount);
    this.#optimizer = new OffloadedOptimizer(options.spec.optimizer, length);
  }

  async gradients(samples: Uint32Array, globalBatch: number, into: Float32Array<ArrayBuffer>): Promise<void> {
    this.#enter();
    await this.#pass(samples.length);
    this.#compute(samples, globalBatch, into);
    this.latest = samples.slice();
    this.#options.spoil?.(into, samples);
    this.#busy = false;
  }

  async localStep(samples: Uint32Array, globalBatch: number, learningRate: number): Promise<LocalResult> {
    this.#enter();
    if (this.#gate === "told") this.#gate = "open";
    this.#compute(samples, globalBatch, this.#gradients);
    this.#options.spoil?.(this.#gradients, samples);
    if (this.#gate === "open" && !allFinite(this.#gradients)) this.#gate = "closed";
    const applied = this.#gate === "open";
    if (applied) this.#optimizer.step(this.#weights, this.#gradients, learningRate);
    const sums = this.#gradients.slice(this.layout.length);
    this.#busy = false;
    await this.#pass(samples.length);
    if (!applied) this.#gate = "told";
    return { sums, applied };
  }

  writeWeights(weights: Float32Array<ArrayBuffer>): void {
    this.#enter();
    this.#weights.set(weights);
    this.#busy = false;
  }

  async readState(): Promise<TrainingState> {
    this.#enter();
    await this.#pass(0);
    this.#busy = false;
    return {
      weights: this.#weights.slice(),
      optimizer: this.#optimizer.state().map((array) => Float32Array.from(array)),
      optimizerSteps: this.#optimizer.steps,
    };
  }

  writeState(state: TrainingState): void {
    this.#enter();
    this.#weights.set(state.weights);
    this.#optimizer.loadState(state.optimizer, state.optimizerSteps);
    this.#busy = false;
  }

  async evaluate(from: number, to: number): Promise<Evaluation> {
    this.#enter();
    await this.#pass(to - from);
    let loss = 0;
    let correct = 0;
    for (let index = from; index < to; index += 1) {
      const { probabilities, label } = this.#forward(this.sampleCount + index);
      loss -= Math.log(probabilities[label]!);
      if (probabilities.indexOf(Math.max(...probabilities)) === label) correct += 1;
    }
    this.#busy = false;
    const count = to - from;
    return { loss: count === 0 ? 0 : loss / count, correct, count };
  }

  async predict(indices: readonly number[]): Promise<readonly Prediction[]> {
    this.#enter();
    await this.#pass(indices.length);
    this.#busy = false;
    return indices.map((index) => {
      const { probabilities, label } = this.#forward(this.sampleCount + index);
      const probability = Math.max(...probabilities);
      return { index, label, guess: probabilities.indexOf(probability), probability, pixels: new Uint8Array(0) };
    });
  }

  destroy(): void {
    this.destroyed = true;
  }

  #compute(samples: Uint32Array, globalBatch: number, into: Float32Array<ArrayBuffer>): void {
    const sums = new Float64Array(softmaxElements);
    let loss = 0;
    let correct = 0;
    for (const sample of samples) {
      const { probabilities, label } = this.#forward(sample);
      loss -= Math.log(probabilities[label]!);
      if (probabilities.indexOf(Math.max(...probabilities)) === label) correct += 1;
      probabilities.forEach((probability, index) => {
        const error = (probability - (index === label ? 1 : 0)) / globalBatch;
        for (let feature = 0; feature < features; feature += 1)
          sums[index * features + feature]! += error * this.#inputs[sample * features + feature]!;
        sums[features * classes + index]! += error;
      });
    }
    into.fill(0);
    into.set(sums);
    into[this.layout.length + metricSlots.loss] = loss;
    into[this.layout.length + metricSlots.correct] = correct;
    into[this.layout.length + metricSlots.samples] = samples.length;
  }

  #forward(sample: number): { probabilities: number[]; label: number } {
    const scores = Array.from({ length: classes }, (_, label) => {
      let score = this.#weights[features * classes + label]!;
      for (let feature = 0; feature < features; feature += 1)
        score += this.#weights[label * features + feature]! * this.#inputs[sample * features + feature]!;
      return Math.exp(score);
    });
    const total = scores.reduce((sum, score) => sum + score, 0);
    return { probabilities: scores.map((score) => score / total), label: this.#labels[sample]! };
  }

  #enter(): void {
    if (this.#busy) throw new Error("Two calls of a replica overlap.");
    if (this.destroyed) throw new Error("A destroyed replica was used.");
    this.#busy = true;
  }

  #pass(samples: number): Promise<void> {
    const milliseconds = this.#options.compute?.(samples) ?? 0;
    if (milliseconds === 0) return Promise.resolve();
    return new Promise((resolve) => this.#options.clock.setTimeout(resolve, milliseconds));
  }
}

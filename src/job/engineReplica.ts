import type { LabelledImages, Mnist } from "../data/mnist";
import type { Device } from "../gpu";
import type { Module } from "../nn";
import { FlatOptimizer } from "../optim/flatOptimizer";
import * as torch from "../tensor";
import { digitSide, mnistModels } from "./recipes/mnist";
import {
  type Evaluation,
  type LocalResult,
  metricSlotCount,
  metricSlots,
  type Prediction,
  type Replica,
  type TrainingState,
} from "./replica";
import { splitIntoMicroBatches } from "./shares";
import type { JobSpec, ModelName } from "./spec";

const pixelsPerDigit = digitSide * digitSide;

/** A micro-batch's inputs on the GPU, written anew for each use, so that every use replays the same plan. */
interface MicroBatchInputs {
  readonly images: torch.Tensor;
  readonly labels: torch.Tensor;
  /** 1/globalBatch for real rows and 0 for padding. */
  readonly rowWeights: torch.Tensor;
  /** 1 for real rows and 0 for padding. */
  readonly rowMask: torch.Tensor;
  readonly host: { images: Float32Array; labels: Int32Array; rowWeights: Float32Array; rowMask: Float32Array };
}

/** Float32 elements of a model's flat weights, padding included. Needs no device. */
export const layoutLengthOf = (model: ModelName): number =>
  new torch.FlatParameters(mnistModels[model]().namedParameters()).layout.length;

/** The Replica of the MNIST recipe over the WebGPU engine. */
export class EngineReplica implements Replica {
  readonly sampleCount: number;
  readonly validationCount: number;
  readonly lost: Promise<string>;
  readonly #model: Module;
  readonly #flat: torch.FlatParameters;
  readonly #optimizer: FlatOptimizer;
  readonly #inputs = new Map<number, MicroBatchInputs>();
  /** 1, or 0 from a step with gradients that aren't finite on: the optimizer changes nothing then. */
  readonly #gate = torch.ones([1]).keep();
  #isGateClosed = false;
  /** Loss sum and right guesses of an evaluation. */
  readonly #evaluation = torch.zeros([metricSlotCount]).keep();

  constructor(
    device: Device,
    spec: JobSpec,
    readonly data: Mnist,
  ) {
    torch.setDefaultDevice(device);
    torch.manualSeed(spec.seed);
    this.#model = mnistModels[spec.model]();
    this.#flat = new torch.FlatParameters(this.#model.namedParameters(), { extra: metricSlotCount });
    this.#optimizer = new FlatOptimizer(spec.optimizer, this.#flat);
    this.sampleCount = data.train.count;
    this.validationCount = data.validation.count;
    this.lost = device.lost;
  }

  get layout() {
    return this.#flat.layout;
  }

  async gradients(samples: Uint32Array, globalBatch: number, into: Float32Array<ArrayBuffer>): Promise<void> {
    this.#accumulate(samples, globalBatch);
    await this.#flat.readGradients(into);
    into[this.layout.length + metricSlots.samples] = samples.length;
  }

  async localStep(samples: Uint32Array, globalBatch: number, learningRate: number): Promise<LocalResult> {
    if (this.#isGateClosed) this.#gate.write([1]);
    this.#isGateClosed = false;
    this.#accumulate(samples, globalBatch);
    // Once closed it stays so, such that no step under way goes on from one that was skipped.
    const finite = torch.to(torch.all(torch.isfinite(this.#flat.gradients)), "float32");
    torch.noGrad(() => torch.copy_(this.#gate, torch.mul(this.#gate, finite)));
    this.#optimizer.step(learningRate, this.#gate);
    const reads = [this.#flat.extra.data(), this.#gate.data()];
    torch.flush();
    const [metrics, gate] = await Promise.all(reads);
    const sums = Float32Array.from(metrics!);
    sums[metricSlots.samples] = samples.length;
    const applied = gate![0] === 1;
    if (!applied) {
      this.#isGateClosed = true;
      this.#optimizer.takeBack();
    }
    return { sums, applied };
  }

  writeWeights(weights: Float32Array<ArrayBuffer>): void {
    this.#flat.writeWeights(weights);
  }

  async readState(): Promise<TrainingState> {
    const weights = new Float32Array(this.layout.length);
    await this.#flat.readWeights(weights);
    return { weights, optimizer: await this.#optimizer.readState(), optimizerSteps: this.#optimizer.steps };
  }

  writeState(state: TrainingState): void {
    this.#flat.writeWeights(state.weights);
    this.#optimizer.writeState(state.optimizer, state.optimizerSteps);
  }

  async evaluate(from: number, to: number): Promise<Evaluation> {
    this.#evaluation.write(new Float32Array(metricSlotCount));
    const indices = Uint32Array.from({ length: to - from }, (_, i) => from + i);
    this.#forEachMicroBatch(this.data.validation, indices, 1, (inputs) => {
      torch.noGrad(() => {
        const logits = this.#model.forward(inputs.images);
        torch.accumulate_(this.#evaluation, metricSums(logits, rowLosses(logits, inputs), inputs));
      });
    });
    const sums = await this.#evaluation.data();
    const count = to - from;
    return { loss: count > 0 ? sums[metricSlots.loss] / count : 0, correct: sums[metricSlots.correct], count };
  }

  async predict(indices: readonly number[]): Promise<readonly Prediction[]> {
    const { images, labels } = this.data.validation;
    const pixels = Float32Array.from(
      indices.flatMap((index) => [...digit(images, index)]),
      (value) => value / 255,
    );
    const input = torch.tensor(pixels, { shape: [indices.length, 1, digitSide, digitSide] });
    const probabilities = await torch.noGrad(() => torch.softmax(this.#model.forward(input), 1)).data();
    return indices.map((index, row) => {
      const classes = Array.from(probabilities.subarray(row * 10, row * 10 + 10));
      const probability = Math.max(...classes);
      return {
        index,
        label: labels[index],
        guess: classes.indexOf(probability),
        probability,
        pixels: digit(images, index),
      };
    });
  }

  destroy(): void {
    this.#inputs.clear();
  }

  /** Leaves the share's gradients and metric sums in the flat gradients. */
  #accumulate(samples: Uint32Array, globalBatch: number): void {
    this.#flat.zeroGradients();
    this.#forEachMicroBatch(this.data.train, samples, globalBatch, (inputs) => {
      const logits = this.#model.forward(inputs.images);
      const losses = rowLosses(logits, inputs);
      torch.sum(torch.mul(losses, inputs.rowWeights)).backward();
      torch.noGrad(() => torch.accumulate_(this.#flat.extra, metricSums(logits, losses, inputs)));
    });
  }

  #forEachMicroBatch(
    data: LabelledImages,
    samples: Uint32Array,
    globalBatch: number,
    record: (inputs: MicroBatchInputs) => void,
  ): void {
    let begin = 0;
    for (const { size, rows } of splitIntoMicroBatches(samples.length)) {
      const inputs = this.#microBatchInputs(size);
      fill(inputs, data, samples.subarray(begin, begin + rows), globalBatch);
      record(inputs);
      // The next micro-batch of this size overwrites the inputs, so this one must be on the queue before.
      torch.flush();
      begin += rows;
    }
  }

  #microBatchInputs(size: number): MicroBatchInputs {
    let inputs = this.#inputs.get(size);
    if (!inputs) {
      inputs = {
        images: torch.zeros([size, 1, digitSide, digitSide]).keep(),
        labels: torch.zeros([size], { dtype: "int32" }).keep(),
        rowWeights: torch.zeros([size]).keep(),
        rowMask: torch.zeros([size]).keep(),
        host: {
          images: new Float32Array(size * pixelsPerDigit),
          labels: new Int32Array(size),
          rowWeights: new Float32Array(size),
          rowMask: new Float32Array(size),
        },
      };
      this.#inputs.set(size, inputs);
    }
    return inputs;
  }
}

const digit = (images: Uint8Array, index: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(images.subarray(index * pixelsPerDigit, (index + 1) * pixelsPerDigit));

const rowLosses = (logits: torch.Tensor, { labels }: MicroBatchInputs): torch.Tensor =>
  torch.crossEntropy(logits, labels, { reduction: "none" });

/** [loss sum, right guesses, 0, 0] over the real rows, in the order of metricSlots. */
function metricSums(logits: torch.Tensor, losses: torch.Tensor, { labels, rowMask }: MicroBatchInputs): torch.Tensor {
  const right = torch.where(torch.eq(torch.argmax(logits, 1), labels), rowMask, torch.zeros([1]));
  const sums = [torch.sum(torch.mul(losses.detach(), rowMask)), torch.sum(right)];
  return torch.cat([...sums.map((sum) => torch.reshape(sum, [1])), torch.zeros([2])], 0);
}

function fill(inputs: MicroBatchInputs, data: LabelledImages, samples: Uint32Array, globalBatch: number): void {
  const { images, labels, rowWeights, rowMask } = inputs.host;
  samples.forEach((sample, row) => {
    const source = sample * pixelsPerDigit;
    const target = row * pixelsPerDigit;
    for (let pixel = 0; pixel < pixelsPerDigit; pixel++) images[target + pixel] = data.images[source + pixel] / 255;
    labels[row] = data.labels[sample];
  });
  images.fill(0, samples.length * pixelsPerDigit);
  labels.fill(0, samples.length);
  rowWeights.fill(0).fill(1 / globalBatch, 0, samples.length);
  rowMask.fill(0).fill(1, 0, samples.length);
  inputs.images.write(images);
  inputs.labels.write(labels);
  inputs.rowWeights.write(rowWeights);
  inputs.rowMask.write(rowMask);
}

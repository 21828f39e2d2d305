/** Sums over samples that ride at the end of the flat gradients, so that one all-reduce carries both. */
export const metricSlots = { loss: 0, correct: 1, samples: 2, spare: 3 } as const;
export const metricSlotCount = 4;

/** One parameter's place in the flat buffers; `offset` and `length` count float32 elements. */
export interface LayoutEntry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly length: number;
}

export interface ParameterLayout {
  readonly entries: readonly LayoutEntry[];
  /** Float32 elements of the flat weights, padding included. */
  readonly length: number;
}

/** Flat weights with the optimizer's state (momentum, or first and second moments) and its step count. */
export interface TrainingState {
  readonly weights: Float32Array<ArrayBuffer>;
  readonly optimizer: readonly Float32Array<ArrayBuffer>[];
  readonly optimizerSteps: number;
}

/** The loss is a mean over `count` samples; `correct` counts right guesses. */
export interface Evaluation {
  readonly loss: number;
  readonly correct: number;
  readonly count: number;
}

export interface Prediction {
  readonly index: number;
  readonly label: number;
  readonly guess: number;
  /** Softmax probability of the guess. */
  readonly probability: number;
  readonly pixels: Uint8Array<ArrayBuffer>;
}

/** What came of a lone member's step. */
export interface LocalResult {
  /** metricSlotCount sums over the samples. */
  readonly sums: Float32Array;
  /** False where a gradient wasn't finite: the weights and the optimizer's state are those from before. */
  readonly applied: boolean;
}

/**
 * One member's copy of the model on its own device. All calls are asynchronous and must not overlap: the trainer
 * awaits one before it makes the next.
 */
export interface Replica {
  readonly layout: ParameterLayout;
  readonly sampleCount: number;
  /**
   * Gradients of this member's samples, each weighted 1/globalBatch, so that the sum over members is the mean over the
   * global batch. Writes layout.length gradients, then metricSlotCount sums (loss sum, correct, samples), into `into`.
   * @param samples indices into the training set; may be empty, which gives zeros.
   */
  gradients(samples: Uint32Array, globalBatch: number, into: Float32Array<ArrayBuffer>): Promise<void>;
  /**
   * A lone member's whole step on the GPU: gradients, then the WGSL optimizer. Need not be awaited before the next step;
   * but a step that wasn't applied leaves those unapplied that are under way behind it. They are to be awaited, and the
   * first one called after that goes on from where the weights are.
   */
  localStep(samples: Uint32Array, globalBatch: number, learningRate: number): Promise<LocalResult>;
  /** Overwrites the flat weights on the GPU. */
  writeWeights(weights: Float32Array<ArrayBuffer>): void;
  readState(): Promise<TrainingState>;
  writeState(state: TrainingState): void;
  /** Loss and accuracy over validation samples [from, to). */
  evaluate(from: number, to: number): Promise<Evaluation>;
  readonly validationCount: number;
  predict(indices: readonly number[]): Promise<readonly Prediction[]>;
  /** Resolves with a sentence when the device is lost. */
  readonly lost: Promise<string>;
  destroy(): void;
}

import { seededRandom } from "../../src/base/seededRandom";

export const workloadNames = ["mlp", "cnn", "gpt"] as const;
export type WorkloadName = (typeof workloadNames)[number];

/** A parameter in PyTorch's layout: [out, in] and [out, in, rows, columns]. */
export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  /** Initial values lie evenly within `range` around `center`. */
  readonly center: number;
  readonly range: number;
}

/** What a batch holds: digits as float32, or token ids as int32. */
export type BatchInput =
  | { readonly kind: "digits"; readonly shape: readonly [batch: number, channels: 1, rows: 28, columns: 28] }
  | { readonly kind: "tokens"; readonly shape: readonly [batch: number, places: number] };

export interface Workload {
  readonly name: WorkloadName;
  /** What every engine computes. */
  readonly description: string;
  readonly input: BatchInput;
  /** Of each row of logits, which there are `rows` of in a batch. */
  readonly classes: number;
  readonly rows: number;
  readonly parameters: readonly ParameterSpec[];
  /** Multiplications with an addition in one step's products: forward, and both gradients where they are needed. */
  readonly multiplyAdds: number;
  /** Elements of the batch's input, and of the layers' outputs, each with its bias and activation counted once. */
  readonly inputElements: number;
  readonly activationElements: number;
}

const digits = 64;

/** The GPT's sizes. */
export const gptSizes = { width: 128, heads: 4, layers: 4, places: 64, vocabulary: 65, batch: 8 } as const;

/** torch.optim.Adam's defaults. */
export const adamOptions = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 } as const;

const linear = (name: string, inputs: number, outputs: number): ParameterSpec[] => [
  { name: `${name}.weight`, shape: [outputs, inputs], center: 0, range: inputs ** -0.5 },
  { name: `${name}.bias`, shape: [outputs], center: 0, range: inputs ** -0.5 },
];

const conv3x3 = (name: string, inputs: number, outputs: number): ParameterSpec[] => [
  { name: `${name}.weight`, shape: [outputs, inputs, 3, 3], center: 0, range: (inputs * 9) ** -0.5 },
  { name: `${name}.bias`, shape: [outputs], center: 0, range: (inputs * 9) ** -0.5 },
];

const embedding = (name: string, count: number, width: number): ParameterSpec => ({
  ...{ name: `${name}.weight`, shape: [count, width], center: 0, range: 0.05 },
});

const layerNorm = (name: string, width: number): ParameterSpec[] => [
  { name: `${name}.weight`, shape: [width], center: 1, range: 0 },
  { name: `${name}.bias`, shape: [width], center: 0, range: 0 },
];

const { width, layers, places, vocabulary, batch } = gptSizes;
const gptBlock = (name: string): ParameterSpec[] => [
  ...layerNorm(`${name}.ln_1`, width),
  ...linear(`${name}.attn`, width, 3 * width),
  ...linear(`${name}.proj`, width, width),
  ...layerNorm(`${name}.ln_2`, width),
  ...linear(`${name}.fc`, width, 4 * width),
  ...linear(`${name}.out`, 4 * width, width),
];

// The first layer's input needs no gradient, so its product is made twice; the others' three times.
const mlpProducts = 2 * 784 * 256 + 3 * (256 * 128 + 128 * 10);
const cnnProducts = 2 * 28 * 28 * 9 * 16 + 3 * (14 * 14 * 9 * 16 * 32 + 7 * 7 * 32 * 10);
/** For each token. Attention's products are counted whole, though half of its scores are masked. */
const gptProducts = 3 * (layers * (12 * width * width + 2 * places * width) + width * vocabulary);

export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  mlp: {
    name: "mlp",
    description: "784-256-128-10, ReLU then GELU (erf), batches of 64",
    input: { kind: "digits", shape: [digits, 1, 28, 28] },
    classes: 10,
    rows: digits,
    parameters: [...linear("1", 784, 256), ...linear("3", 256, 128), ...linear("5", 128, 10)],
    multiplyAdds: digits * mlpProducts,
    inputElements: digits * 784,
    activationElements: digits * (256 + 128 + 10),
  },
  cnn: {
    name: "cnn",
    description: "conv 3x3 1-16, ReLU, max-pool 2, conv 3x3 16-32, ReLU, max-pool 2, linear 1568-10, batches of 64",
    input: { kind: "digits", shape: [digits, 1, 28, 28] },
    classes: 10,
    rows: digits,
    parameters: [...conv3x3("0", 1, 16), ...conv3x3("3", 16, 32), ...linear("7", 32 * 7 * 7, 10)],
    multiplyAdds: digits * cnnProducts,
    inputElements: digits * 784,
    activationElements: digits * (16 * 28 * 28 + 16 * 14 * 14 + 32 * 14 * 14 + 32 * 7 * 7 + 10),
  },
  gpt: {
    name: "gpt",
    description: "4 layers, width 128, 4 heads, context 64, vocabulary 65, output tied to the embedding, batches of 8",
    input: { kind: "tokens", shape: [batch, places] },
    classes: vocabulary,
    rows: batch * places,
    parameters: [
      embedding("wte", vocabulary, width),
      embedding("wpe", places, width),
      ...Array.from({ length: layers }, (_, i) => gptBlock(`blocks.${i}`)).flat(),
      ...layerNorm("ln_f", width),
    ],
    multiplyAdds: batch * places * gptProducts,
    inputElements: batch * places,
    // Of a layer: two norms, queries with keys and values, attention, its projection, and the two of the feed-forward part.
    activationElements: batch * places * (width + layers * 12 * width + width + vocabulary),
  },
};

export const parameterCount = ({ parameters }: Workload): number =>
  parameters.reduce((total, { shape }) => total + shape.reduce((product, size) => product * size, 1), 0);

/**
 * The least bytes that a step moves when each layer is one kernel forward and one for each gradient, and no cache helps:
 * weights are read forward and backward and their gradients written; Adam reads weights, gradients and two moments, and
 * writes all but the gradients; the input is read forward and for the weights' gradient; an activation is written, read
 * by the next layer and read again backward, and its gradient is written and read.
 */
export const minimumBytes = (workload: Workload): number =>
  4 * (10 * parameterCount(workload) + 2 * workload.inputElements + 5 * workload.activationElements);

export type ParameterValues = ReadonlyMap<string, Float32Array<ArrayBuffer>>;

/** The same initial weights for every engine: those of PyTorch's layers, and embeddings as a GPT has them. */
export function initialValues(workload: Workload, seed: number): ParameterValues {
  const random = seededRandom(seed);
  return new Map(
    workload.parameters.map(({ name, shape, center, range }) => {
      const length = shape.reduce((product, size) => product * size, 1);
      return [name, Float32Array.from({ length }, () => center + range * (2 * random() - 1))];
    }),
  );
}

/** A parameter's values, which initialValues() made for every name of the workload. */
export function valuesOf(values: ParameterValues, name: string): Float32Array<ArrayBuffer> {
  const found = values.get(name);
  if (!found) throw new Error(`The workload has no parameter ${name}.`);
  return found;
}

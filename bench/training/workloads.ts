import { seededRandom } from "../../src/base/seededRandom";

export type WorkloadName = "mlp" | "cnn";

/** A parameter in PyTorch's layout: [out, in] and [out, in, rows, columns]. */
export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  /** Inputs of one output, which the initial weights' range follows from. */
  readonly fanIn: number;
}

export interface Workload {
  readonly name: WorkloadName;
  /** What every engine computes. */
  readonly description: string;
  readonly parameters: readonly ParameterSpec[];
  /** Multiplications with an addition in one step's products: forward, and both gradients where they are needed. */
  readonly multiplyAdds: number;
  /** Elements of the batch's input, and of the layers' outputs, each with its bias and activation counted once. */
  readonly inputElements: number;
  readonly activationElements: number;
}

export const batchSize = 64;

/** torch.optim.Adam's defaults. */
export const adamOptions = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 } as const;

const linear = (name: string, inputs: number, outputs: number): ParameterSpec[] => [
  { name: `${name}.weight`, shape: [outputs, inputs], fanIn: inputs },
  { name: `${name}.bias`, shape: [outputs], fanIn: inputs },
];

const conv3x3 = (name: string, inputs: number, outputs: number): ParameterSpec[] => [
  { name: `${name}.weight`, shape: [outputs, inputs, 3, 3], fanIn: inputs * 9 },
  { name: `${name}.bias`, shape: [outputs], fanIn: inputs * 9 },
];

// The first layer's input needs no gradient, so its product is made twice; the others' three times.
const mlpProducts = 2 * 784 * 128 + 3 * (128 * 64 + 64 * 10);
const cnnProducts = 2 * 28 * 28 * 9 * 16 + 3 * (14 * 14 * 9 * 16 * 32 + 7 * 7 * 32 * 10);

export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  mlp: {
    name: "mlp",
    description: "784-128-64-10, ReLU then GELU (erf)",
    parameters: [...linear("1", 784, 128), ...linear("3", 128, 64), ...linear("5", 64, 10)],
    multiplyAdds: batchSize * mlpProducts,
    inputElements: batchSize * 784,
    activationElements: batchSize * (128 + 64 + 10),
  },
  cnn: {
    name: "cnn",
    description: "conv 3x3 1-16, ReLU, max-pool 2, conv 3x3 16-32, ReLU, max-pool 2, linear 1568-10",
    parameters: [...conv3x3("0", 1, 16), ...conv3x3("3", 16, 32), ...linear("7", 32 * 7 * 7, 10)],
    multiplyAdds: batchSize * cnnProducts,
    inputElements: batchSize * 784,
    activationElements: batchSize * (16 * 28 * 28 + 16 * 14 * 14 + 32 * 14 * 14 + 32 * 7 * 7 + 10),
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

/** The same initial weights for every engine: uniform in ±1/sqrt(fanIn), as PyTorch's layers begin. */
export function initialValues(workload: Workload, seed: number): ParameterValues {
  const random = seededRandom(seed);
  return new Map(
    workload.parameters.map(({ name, shape, fanIn }) => {
      const length = shape.reduce((product, size) => product * size, 1);
      const bound = 1 / Math.sqrt(fanIn);
      return [name, Float32Array.from({ length }, () => bound * (2 * random() - 1))];
    }),
  );
}

/** A parameter's values, which initialValues() made for every name of the workload. */
export function valuesOf(values: ParameterValues, name: string): Float32Array<ArrayBuffer> {
  const found = values.get(name);
  if (!found) throw new Error(`The workload has no parameter ${name}.`);
  return found;
}

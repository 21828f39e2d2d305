import { parseIdx } from "../src/data/idx";
import { readSafetensors, type SafetensorsTensor } from "../src/data/safetensors";
import * as optim from "../src/optim/index";
import * as torch from "../src/tensor/index";

/** A run of PyTorch's, as tests/reference/README.md describes it. */
export interface TrainingRun {
  readonly name: string;
  readonly model: string;
  /** The safetensors file with the weights that it starts from. */
  readonly initial: string;
  /** Each step's loss before its update. */
  readonly losses: readonly number[];
  readonly optimizer?: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly learningRates?: readonly number[];
  /** Where there are any, gradients are clipped at norm 1; these are the norms before. */
  readonly gradientNorms?: readonly number[];
  /** Indices into MNIST's training set. */
  readonly batches?: readonly (readonly number[])[];
  /** A safetensors file with token batches [steps, rows, places + 1], in the place of batches. */
  readonly tokens?: string;
  /** How many ranks of DistributedDataParallel trained it, rank r with batch[r::world]. */
  readonly world?: number;
}

export type Weights = ReadonlyMap<string, SafetensorsTensor>;

async function reference(path: string): Promise<Response> {
  const response = await fetch(`/@reference/${path}`);
  if (!response.ok) throw new Error(`The reference run can't be read: ${await response.text()}`);
  return response;
}

const bytesOf = async (path: string) => new Uint8Array(await (await reference(path)).arrayBuffer());
export const readWeights = async (file: string): Promise<Weights> =>
  readSafetensors(await bytesOf(`training/${file}`)).tensors;

export interface RunList {
  readonly names: readonly string[];
  /** Those that have final weights. */
  readonly finals: ReadonlySet<string>;
  /** The folder that RINGLET_TRAINING_REFERENCE asks for. */
  readonly given: string | null;
  /** Whether a part of the project's own runs is enough. */
  readonly sample: boolean;
}

interface Served {
  readonly training: string | null;
  readonly sample: boolean;
}

export async function listRuns(): Promise<RunList> {
  const { training: given, sample }: Served = await (await reference("")).json();
  const files: string[] = await (await reference("training/")).json();
  const endingIn = (end: string) => files.flatMap((file) => (file.endsWith(end) ? [file.slice(0, -end.length)] : []));
  return { names: endingIn(".json"), finals: new Set(endingIn(".final.safetensors")), given, sample };
}

export const readRun = async (name: string): Promise<TrainingRun> => ({
  ...(await (await reference(`training/${name}.json`)).json()),
  name,
});

const pixelsPerImage = 28 * 28;
const idx = async (name: string, shape: readonly number[]) =>
  parseIdx(await bytesOf(`mnist/${name}`), shape, name).data;
let digits: Promise<readonly [images: Uint8Array, labels: Uint8Array]> | null = null;

/** One step's rows: what the model takes, and the classes that it is to find. */
export interface Batch {
  readonly input: torch.Tensor;
  readonly target: torch.Tensor;
}

/** Pixels [N, 1, 28, 28] between 0 and 1, and labels [N], of samples of the training set. */
export async function digitBatch(samples: readonly number[]): Promise<Batch> {
  digits ??= Promise.all([idx("train-images-idx3-ubyte", [60_000, 28, 28]), idx("train-labels-idx1-ubyte", [60_000])]);
  const [images, labels] = await digits;
  const pixels = new Float32Array(samples.length * pixelsPerImage);
  for (const [row, sample] of samples.entries())
    for (let i = 0; i < pixelsPerImage; i++)
      pixels[row * pixelsPerImage + i] = images[sample * pixelsPerImage + i]! / 255;
  return {
    input: torch.tensor(pixels, { shape: [samples.length, 1, 28, 28] }),
    target: torch.tensor(Int32Array.from(samples, (sample) => labels[sample]!)),
  };
}

/** The batch of each step. */
export async function batchesOf(run: TrainingRun): Promise<(step: number) => Promise<Batch>> {
  if (run.tokens === undefined)
    return (step) => {
      const batch = run.batches?.[step];
      if (!batch) throw new Error(`The run ${run.name} has no batch for step ${step}.`);
      return digitBatch(batch);
    };
  const tokens = (await readWeights(run.tokens)).get("tokens");
  if (!tokens) throw new Error(`The run ${run.name} has no tokens in ${run.tokens}.`);
  const [, rows = 0, places = 0] = tokens.shape;
  const cut = (step: number, from: number) =>
    Int32Array.from({ length: rows * (places - 1) }, (_, i) => {
      const row = step * rows + Math.floor(i / (places - 1));
      return Number(tokens.data[row * places + from + (i % (places - 1))]);
    });
  return async (step) => ({
    input: torch.tensor(cut(step, 0), { shape: [rows, places - 1] }),
    target: torch.tensor(cut(step, 1)),
  });
}

const kinds = ["nadam", "radam", "adamax", "adamw", "adam", "adagrad", "adadelta", "rmsprop", "sgd"] as const;

/** The run's optimizer as a specification. Options that change nothing in the formula (fused and the like) are left out. */
export function specOf({ name, world, optimizer, options }: TrainingRun): optim.OptimizerSpec {
  // Those of several ranks were all trained with this one (tests/reference/README.md).
  if (world !== undefined && options === undefined)
    return optim.sgd({ learningRate: 0.05, momentum: 0.9, weightDecay: 1e-4 });
  if (options === undefined || optimizer === undefined)
    throw new Error(`The run ${name} doesn't say what optimizes it: expected "optimizer" and "options".`);
  const kind =
    optimizer === "nesterov" ? "sgd" : kinds.find((candidate) => optimizer.toLowerCase().includes(candidate));
  if (!kind) throw new Error(`The run ${name} has the optimizer ${optimizer}; expected one of ${kinds.join(", ")}.`);
  const number = (option: string) => {
    const value = Number(options[option]);
    if (Number.isNaN(value)) throw new Error(`The run ${name} lacks ${kind}'s option ${option}.`);
    return value;
  };
  const common = {
    learningRate: number("lr"),
    weightDecay: number("weight_decay"),
    maximize: options.maximize === true,
  };
  const moments = () => {
    const [beta1, beta2] = Array.isArray(options.betas) ? options.betas.map(Number) : [];
    if (beta1 === undefined || beta2 === undefined) throw new Error(`The run ${name} lacks ${kind}'s betas.`);
    return { ...common, beta1, beta2, epsilon: number("eps") };
  };
  switch (kind) {
    case "sgd": {
      const [momentum, dampening] = [number("momentum"), number("dampening")];
      return optim.sgd({ ...common, momentum, dampening, nesterov: options.nesterov === true });
    }
    case "adagrad": {
      const [learningRateDecay, initialAccumulatorValue] = [number("lr_decay"), number("initial_accumulator_value")];
      return optim.adagrad({ ...common, epsilon: number("eps"), learningRateDecay, initialAccumulatorValue });
    }
    case "adadelta":
      return optim.adadelta({ ...common, epsilon: number("eps"), rho: number("rho") });
    case "rmsprop": {
      const [alpha, momentum] = [number("alpha"), number("momentum")];
      return optim.rmsprop({ ...common, epsilon: number("eps"), alpha, momentum, centered: options.centered === true });
    }
    case "nadam":
      return optim.nadam({ ...moments(), momentumDecay: number("momentum_decay") });
    case "radam":
      return optim.radam(moments());
    case "adamax":
      return optim.adamax(moments());
    case "adam":
      return optim.adam({ ...moments(), amsgrad: options.amsgrad === true });
    case "adamw":
      return optim.adamw({ ...moments(), amsgrad: options.amsgrad === true });
  }
}

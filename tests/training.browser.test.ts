import { expect, test } from "vitest";
import { parseIdx } from "../src/data/idx";
import { readSafetensors } from "../src/data/safetensors";
import * as nn from "../src/nn/index";
import * as optim from "../src/optim/index";
import * as torch from "../src/tensor/index";

/** A run of PyTorch's, as tests/reference/README.md describes it. */
interface TrainingRun {
  readonly model: "mlp" | "cnn";
  readonly optimizer: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly losses: readonly number[];
  readonly learningRates: readonly number[];
  readonly batches: readonly (readonly number[])[];
  readonly initial: string;
}

const reference = async (path: string) => {
  const response = await fetch(`/@reference/${path}`);
  if (!response.ok) throw new Error(`The reference run can't be read: ${await response.text()}`);
  return response;
};
const bytes = async (path: string) => new Uint8Array(await (await reference(path)).arrayBuffer());
const run = async (name: string): Promise<TrainingRun> => (await reference(`training/${name}.json`)).json();
const weights = async (name: string) => readSafetensors(await bytes(`training/${name}`)).tensors;
const idx = async (name: string, shape: readonly number[]) => parseIdx(await bytes(`mnist/${name}`), shape, name).data;
const images = await idx("train-images-idx3-ubyte", [60_000, 28, 28]);
const labels = await idx("train-labels-idx1-ubyte", [60_000]);

const pixelsPerImage = 28 * 28;

/** Pixels [N, 1, 28, 28] between 0 and 1, and labels [N], of samples of the training set. */
function batchOf(samples: readonly number[]) {
  const pixels = new Float32Array(samples.length * pixelsPerImage);
  for (const [row, sample] of samples.entries())
    for (let i = 0; i < pixelsPerImage; i++)
      pixels[row * pixelsPerImage + i] = images[sample * pixelsPerImage + i]! / 255;
  return {
    input: torch.tensor(pixels, { shape: [samples.length, 1, 28, 28] }),
    target: torch.tensor(Int32Array.from(samples, (sample) => labels[sample]!)),
  };
}

const models = {
  mlp: () =>
    new nn.Sequential(
      new nn.Flatten(),
      new nn.Linear(784, 128),
      new nn.ReLU(),
      new nn.Linear(128, 64),
      new nn.GELU(),
      new nn.Linear(64, 10),
    ),
  cnn: () =>
    new nn.Sequential(
      new nn.Conv2d(1, 8, 3, { padding: 1 }),
      new nn.BatchNorm2d(8),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Conv2d(8, 16, 3, { stride: 2 }),
      new nn.ReLU(),
      new nn.AvgPool2d(2),
      new nn.Flatten(),
      new nn.Linear(144, 10),
    ),
};

/** The run's optimizer as a specification. Options that change nothing in the formula (fused and the like) are left out. */
function specOf({ optimizer, options }: TrainingRun): optim.OptimizerSpec {
  const number = (name: string) => Number(options[name]);
  const common = {
    learningRate: number("lr"),
    weightDecay: number("weight_decay"),
    maximize: options.maximize === true,
  };
  switch (optimizer) {
    case "sgd":
    case "nesterov":
      return optim.sgd({
        ...common,
        momentum: number("momentum"),
        dampening: number("dampening"),
        nesterov: options.nesterov === true,
      });
    case "adam":
    case "adamw": {
      const [beta1, beta2] = Array.isArray(options.betas) ? options.betas.map(Number) : [];
      if (beta1 === undefined || beta2 === undefined) throw new Error("The run has no betas.");
      const spec = { ...common, beta1, beta2, epsilon: number("eps"), amsgrad: options.amsgrad === true };
      return optimizer === "adam" ? optim.adam(spec) : optim.adamw(spec);
    }
    default:
      throw new Error(`The run's optimizer ${optimizer} has no counterpart here.`);
  }
}

type Step = (learningRate: number) => void | Promise<void>;

/** Trains as the run says, and expects each loss before its update to be PyTorch's within `relative`. */
async function follow(
  run: TrainingRun,
  relative: number,
  optimizerFor: (model: nn.Module) => Step,
): Promise<nn.Module> {
  const model = models[run.model]();
  model.loadStateDict(await weights(run.initial));
  const step = optimizerFor(model);
  expect(run.losses.length).toBe(40);
  for (const [index, samples] of run.batches.entries()) {
    model.zeroGrad();
    const { input, target } = batchOf(samples);
    const loss = torch.crossEntropy(model.forward(input), target);
    loss.backward();
    loss.keep();
    await step(run.learningRates[index]!);
    const expected = run.losses[index]!;
    const actual = await loss.item();
    expect(Math.abs(actual / expected - 1), `step ${index}: loss ${actual}, PyTorch's ${expected}`).toBeLessThan(
      relative,
    );
  }
  return model;
}

/** Expects all weights but those in `noise` to have moved from the run's initial to its final ones: within a part of the way. */
async function expectFinal(
  model: nn.Module,
  initial: string,
  final: string,
  part: number,
  noise: readonly string[] = [],
): Promise<void> {
  const [before, after] = [await weights(initial), await weights(final)];
  for (const [name, tensor] of model.stateDict()) {
    if (noise.includes(name)) continue;
    const [from, to] = [before.get(name), after.get(name)];
    if (!from || !to) throw new Error(`The run's weights lack ${name}.`);
    const values = await tensor.data();
    let [missed, way] = [0, 0];
    for (let i = 0; i < values.length; i++) {
      missed += (Number(values[i]) - Number(to.data[i])) ** 2;
      way += (Number(to.data[i]) - Number(from.data[i])) ** 2;
    }
    expect(way, `the way of ${name}`).toBeGreaterThan(0);
    expect(Math.sqrt(missed / way), `${name}: the part of the way that it is off`).toBeLessThan(part);
  }
}

function perParameter(spec: optim.OptimizerSpec): (model: nn.Module) => Step {
  return (model) => {
    const optimizer = new optim.Optimizer([{ parameters: model.parameters(), spec }]);
    return (learningRate) => {
      for (const group of optimizer.groups) group.learningRate = learningRate;
      optimizer.step();
    };
  };
}

function flat(spec: optim.OptimizerSpec): (model: nn.Module) => Step {
  return (model) => {
    const optimizer = new optim.FlatOptimizer(spec, new torch.FlatParameters(model.namedParameters()));
    return (learningRate) => optimizer.step(learningRate);
  };
}

/** As in a job of several: the gradients come to the CPU, and the new weights go back. */
function offloaded(spec: optim.OptimizerSpec): (model: nn.Module) => Step {
  return (model) => {
    const parameters = new torch.FlatParameters(model.namedParameters());
    const optimizer = new optim.OffloadedOptimizer(spec, parameters.layout.length);
    const gradients = new Float32Array(parameters.layout.length);
    let current: Float32Array | null = null;
    return async (learningRate) => {
      current ??= await parameters.readWeights();
      await parameters.readGradients(gradients);
      optimizer.step(current, gradients, learningRate);
      parameters.writeWeights(current);
    };
  };
}

const places = {
  "an optimizer for each parameter": perParameter,
  "the flat optimizer": flat,
  "the offloaded optimizer": offloaded,
};

for (const [place, optimizer] of Object.entries(places)) {
  // SGD follows to 1e-4; Adam divides by gradients' size and so amplifies rounding: 1e-3.
  test(`mlp-sgd is followed by ${place}`, async () => {
    const of = await run("mlp-sgd");
    const model = await follow(of, 1e-4, optimizer(specOf(of)));
    await expectFinal(model, of.initial, "mlp-sgd.final.safetensors", 1e-4);
  });

  test(`mlp-adamw is followed by ${place}`, async () => {
    const of = await run("mlp-adamw");
    const model = await follow(of, 1e-3, optimizer(specOf(of)));
    await expectFinal(model, of.initial, "mlp-adamw.final.safetensors", 1e-3);
  });
}

test("mlp-nesterov is followed", async () => {
  const of = await run("mlp-nesterov");
  await follow(of, 1e-4, flat(specOf(of)));
});

test("mlp-adam is followed", async () => {
  const of = await run("mlp-adam");
  await follow(of, 1e-3, flat(specOf(of)));
});

test("cnn-adam is followed, with batch norm's running moments", async () => {
  const of = await run("cnn-adam");
  const model = await follow(of, 1e-3, flat(specOf(of)));
  // Batch norm takes away what the bias before it adds: that bias's gradient is rounding noise, which Adam blows up to
  // whole steps, and which the running mean then contains.
  await expectFinal(model, of.initial, "cnn-adam.final.safetensors", 1e-3, ["0.bias", "1.running_mean"]);
});

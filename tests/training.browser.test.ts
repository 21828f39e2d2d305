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
function specOf({ optimizer, options }: Pick<TrainingRun, "optimizer" | "options">): optim.OptimizerSpec {
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
    case "adagrad":
      return optim.adagrad({
        ...common,
        epsilon: number("eps"),
        learningRateDecay: number("lr_decay"),
        initialAccumulatorValue: number("initial_accumulator_value"),
      });
    case "adadelta":
      return optim.adadelta({ ...common, epsilon: number("eps"), rho: number("rho") });
    case "rmsprop":
      return optim.rmsprop({
        ...common,
        epsilon: number("eps"),
        alpha: number("alpha"),
        momentum: number("momentum"),
        centered: options.centered === true,
      });
    case "nadam":
    case "radam":
    case "adamax":
    case "adam":
    case "adamw": {
      const [beta1, beta2] = Array.isArray(options.betas) ? options.betas.map(Number) : [];
      if (beta1 === undefined || beta2 === undefined) throw new Error("The run has no betas.");
      const moments = { ...common, beta1, beta2, epsilon: number("eps") };
      if (optimizer === "nadam") return optim.nadam({ ...moments, momentumDecay: number("momentum_decay") });
      if (optimizer === "radam") return optim.radam(moments);
      if (optimizer === "adamax") return optim.adamax(moments);
      const spec = { ...moments, amsgrad: options.amsgrad === true };
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

test("mlp-adagrad is followed", async () => {
  const of = await run("mlp-adagrad");
  await follow(of, 1e-3, flat(specOf(of)));
});

test("mlp-rmsprop is followed", async () => {
  const of = await run("mlp-rmsprop");
  await follow(of, 1e-3, flat(specOf(of)));
});

class Block extends nn.Module {
  readonly ln_1 = new nn.LayerNorm(64);
  readonly attn = new nn.Linear(64, 192);
  readonly proj = new nn.Linear(64, 64);
  readonly ln_2 = new nn.LayerNorm(64);
  readonly fc = new nn.Linear(64, 256);
  readonly out = new nn.Linear(256, 64);

  forward(input: torch.Tensor): torch.Tensor {
    const [batch = 0, places = 0, width = 0] = input.shape;
    const heads = torch.reshape(this.attn.forward(this.ln_1.forward(input)), [batch, places, 3, 4, width / 4]);
    const [q, k, v] = [0, 1, 2].map((part) => heads.select(2, part).transpose(1, 2));
    const attended = torch.scaledDotProductAttention(q!, k!, v!, { isCausal: true });
    const joined = torch.reshape(attended.transpose(1, 2), [batch, places, width]);
    const middle = input.add(this.proj.forward(joined));
    return middle.add(this.out.forward(this.fc.forward(this.ln_2.forward(middle)).gelu()));
  }
}

/** The output layer is tied to the table of tokens. */
class Gpt extends nn.Module {
  readonly wte: nn.Embedding;
  readonly wpe = new nn.Embedding(64, 64);
  readonly blocks = new nn.ModuleList([new Block(), new Block()]);
  readonly lnF = new nn.LayerNorm(64);

  constructor(vocabulary: number) {
    super();
    this.wte = new nn.Embedding(vocabulary, 64);
  }

  forward(tokens: torch.Tensor): torch.Tensor {
    const places = this.wpe.forward(torch.arange(tokens.size(1)));
    const hidden = this.blocks.items.reduce(
      (value, block) => block.forward(value),
      this.wte.forward(tokens).add(places),
    );
    return torch.linear(this.lnF.forward(hidden), this.wte.weight);
  }
}

interface GptRun extends Omit<TrainingRun, "model" | "batches"> {
  readonly tokens: string;
  readonly vocab: number;
  readonly gradientNorms: readonly number[];
}

test("gpt-adamw is followed, with clipped gradients and tied weights", async () => {
  const of: GptRun = await (await reference("training/gpt-adamw.json")).json();
  const model = new Gpt(of.vocab);
  model.loadStateDict(await weights(of.initial));
  const flatParameters = new torch.FlatParameters(model.namedParameters());
  const optimizer = new optim.FlatOptimizer(specOf(of), flatParameters);
  const tokens = (await weights(of.tokens)).get("tokens");
  if (!tokens) throw new Error("The run has no tokens.");
  expect(of.losses.length).toBe(40);
  const input = torch.tensor(new Int32Array(8 * 64), { shape: [8, 64] });
  const target = torch.tensor(new Int32Array(8 * 64));
  for (const [step, expected] of of.losses.entries()) {
    const at = (row: number, place: number) => Number(tokens.data[(step * 8 + row) * 65 + place]);
    input.write(Int32Array.from({ length: 512 }, (_, i) => at(Math.floor(i / 64), i % 64)));
    target.write(Int32Array.from({ length: 512 }, (_, i) => at(Math.floor(i / 64), (i % 64) + 1)));
    flatParameters.zeroGradients();
    const loss = torch.crossEntropy(torch.reshape(model.forward(input), [512, of.vocab]), target);
    loss.backward();
    const norm = optim.clipGradNorm_(flatParameters, 1);
    optimizer.step(of.learningRates[step]!);
    const [actual, length] = await Promise.all([loss.item(), norm.item()]);
    const what = `step ${step}: loss ${actual}, PyTorch's ${expected}`;
    expect(Math.abs(actual / expected - 1), what).toBeLessThan(1e-3);
    expect(Math.abs(length / of.gradientNorms[step]! - 1), `step ${step}: the gradients' norm`).toBeLessThan(1e-2);
  }
  await expectFinal(model, of.initial, "gpt-adamw.final.safetensors", 1e-2);
});

import { afterAll, expect, test } from "vitest";
import { DistributedDataParallel } from "../src/distributed/distributedDataParallel";
import { makeTabRanks, onAll } from "../src/distributed/testing/tabRanks";
import { requestDevice } from "../src/gpu";
import type * as nn from "../src/nn/index";
import * as optim from "../src/optim/index";
import * as torch from "../src/tensor/index";
import { makeModel } from "./trainingModels";
import { batchesOf, digitBatch, listRuns, readRun, readWeights, specOf, type TrainingRun } from "./trainingRuns";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

const { names, finals, given, sample } = await listRuns();
const followed = sample && given === null ? names.filter((name) => name === "mlp-sgd") : names;
const runs = await Promise.all(followed.map(readRun));

/** Adam and its like divide by the gradients' size and so amplify rounding; SGD doesn't. */
const allowed = (run: TrainingRun): number => (specOf(run).name === "sgd" ? 1e-4 : 1e-3);

/** Batch norm takes away what a bias before it adds: that bias's gradient is rounding noise, which Adam blows up to
 * whole steps, and which the running mean then contains. */
const noise: Readonly<Record<string, readonly string[]>> = { cnn: ["0.bias", "1.running_mean"] };

function expectLoss(run: TrainingRun, step: number, actual: number): void {
  const expected = run.losses[step]!;
  const what = `step ${step}: the loss is ${actual}, PyTorch's ${expected}`;
  expect(Math.abs(actual / expected - 1), what).toBeLessThan(allowed(run));
}

/** Expects the weights to have moved from the run's initial to its final ones, within a part of the way. */
async function expectFinal(run: TrainingRun, state: ReadonlyMap<string, torch.Tensor>): Promise<void> {
  if (!finals.has(run.name)) return;
  const [before, after] = [await readWeights(run.initial), await readWeights(`${run.name}.final.safetensors`)];
  const part = run.gradientNorms?.length ? 10 * allowed(run) : allowed(run);
  for (const [name, tensor] of state) {
    if (noise[run.model]?.includes(name)) continue;
    const [from, to] = [before.get(name), after.get(name)];
    if (!from || !to) throw new Error(`The weights of the run ${run.name} lack ${name}.`);
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

interface Stepper {
  /** Takes a step; resolves to the gradients' norm where the run clips them. */
  step(learningRate: number): Promise<number | null>;
}

/** How a model's parameters are optimized. */
type Place = (run: TrainingRun, model: nn.Module) => Stepper;

const clip = (run: TrainingRun, parameters: torch.Tensor[] | torch.FlatParameters) =>
  run.gradientNorms?.length ? optim.clipGradNorm_(parameters, 1).item() : Promise.resolve(null);

const places: Readonly<Record<string, Place>> = {
  "an optimizer for each parameter": (run, model) => {
    const parameters = model.parameters();
    const optimizer = new optim.Optimizer([{ parameters, spec: specOf(run) }]);
    return {
      step(learningRate) {
        const norm = clip(run, parameters);
        for (const group of optimizer.groups) group.learningRate = learningRate;
        optimizer.step();
        return norm;
      },
    };
  },
  "the flat optimizer": (run, model) => {
    const flat = new torch.FlatParameters(model.namedParameters());
    const optimizer = new optim.FlatOptimizer(specOf(run), flat);
    return {
      step(learningRate) {
        const norm = clip(run, flat);
        optimizer.step(learningRate);
        return norm;
      },
    };
  },
  // As in a job of several: the gradients come to the CPU, and the new weights go back.
  "the offloaded optimizer": (run, model) => {
    const flat = new torch.FlatParameters(model.namedParameters());
    const optimizer = new optim.OffloadedOptimizer(specOf(run), flat.layout.length);
    const gradients = new Float32Array(flat.layout.length);
    let current: Float32Array | null = null;
    return {
      async step(learningRate) {
        const norm = clip(run, flat);
        current ??= await flat.readWeights();
        await flat.readGradients(gradients);
        optimizer.step(current, gradients, learningRate);
        flat.writeWeights(current);
        return norm;
      },
    };
  },
};

/** Trains as the run says, and expects each loss before its update to be PyTorch's. */
async function follow(run: TrainingRun, place: Place): Promise<void> {
  const model = makeModel(run.model, await readWeights(run.initial));
  const optimizer = place(run, model);
  const batchAt = await batchesOf(run);
  expect(run.losses.length).toBeGreaterThan(0);
  for (const step of run.losses.keys()) {
    model.zeroGrad();
    const { input, target } = await batchAt(step);
    const loss = torch.crossEntropy(model.forward(input), target);
    loss.backward();
    const norm = await optimizer.step(run.learningRates?.[step] ?? specOf(run).learningRate);
    expectLoss(run, step, await loss.item());
    if (norm !== null)
      expect(Math.abs(norm / run.gradientNorms![step]! - 1), `step ${step}: the gradients' norm`).toBeLessThan(1e-2);
  }
  await expectFinal(run, model.stateDict());
}

/** Trains the run on several ranks. */
async function followByRanks(run: TrainingRun, world: number): Promise<void> {
  const initial = await readWeights(run.initial);
  const spec = specOf(run);
  const replicas = await onAll(makeTabRanks(world), async (processGroup) => {
    const module = makeModel(run.model, initial);
    // The others get rank 0's.
    if (processGroup.rank > 0)
      for (const parameter of module.parameters()) parameter.write(new Float32Array(parameter.numel));
    // Several buckets, so that they are reduced apart.
    const model = await DistributedDataParallel.create(module, { processGroup, bucketCapMb: 0.03 });
    return {
      rank: processGroup.rank,
      model,
      optimizer: new optim.Optimizer([{ parameters: model.parameters(), spec }]),
    };
  });
  expect(replicas[0]!.model.bucketLengths.length).toBeGreaterThan(1);
  for (const [step, batch] of (run.batches ?? []).entries()) {
    const losses: torch.Tensor[] = [];
    for (const { rank, model, optimizer } of replicas) {
      const { input, target } = await digitBatch(batch.filter((_, index) => index % world === rank));
      optimizer.zeroGrad();
      const loss = torch.crossEntropy(model.forward(input), target);
      loss.backward();
      losses.push(loss);
    }
    await Promise.all(replicas.map(({ model }) => model.averageGradients()));
    for (const { optimizer } of replicas) optimizer.step();
    const values = await Promise.all(losses.map((loss) => loss.item()));
    expectLoss(run, step, values.reduce((sum, value) => sum + value, 0) / world);
  }
  const [first, ...others] = replicas.map(({ model }) => model.module.stateDict());
  for (const [name, value] of first!)
    for (const other of others) expect(await other.get(name)!.data()).toEqual(await value.data());
  await expectFinal(run, first!);
}

test("the reference has runs, the project's own nine unless other ones are asked for", () => {
  if (given !== null) return expect(names.length, `the number of runs in ${given}`).toBeGreaterThan(0);
  expect(names).toEqual([
    "cnn-adam",
    "ddp3-mlp-sgd",
    "gpt-adamw",
    "mlp-adagrad",
    "mlp-adam",
    "mlp-adamw",
    "mlp-nesterov",
    "mlp-rmsprop",
    "mlp-sgd",
  ]);
});

for (const run of runs) {
  const { name, world } = run;
  if (world !== undefined) test(`${name} is followed by ${world} ranks`, () => followByRanks(run, world));
  else test(`${name} is followed by the flat optimizer`, () => follow(run, places["the flat optimizer"]!));
}

/** Followed in every place. */
const everywhere = ["mlp-sgd", "mlp-adamw"];
for (const run of sample ? [] : runs.filter(({ name }) => everywhere.includes(name)))
  for (const place of ["an optimizer for each parameter", "the offloaded optimizer"])
    test(`${run.name} is followed by ${place}`, () => follow(run, places[place]!));

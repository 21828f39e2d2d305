import { expect, test } from "vitest";
import * as nn from "../src/nn/index";
import * as optim from "../src/optim/index";
import * as torch from "../src/tensor/index";

const classes = 4;

/** Small images of `classes` kinds: bright in one quarter each, with noise from `seed`. */
function images(count: number, seed: number) {
  const pixels = new Float32Array(count * 64);
  const labels = Int32Array.from({ length: count }, (_, image) => image % classes);
  for (const [image, label] of labels.entries())
    for (let i = 0; i < 64; i++) {
      const quarter = 2 * Math.floor(i / 32) + Math.floor((i % 8) / 4);
      const noise = ((image * 64 + i + 1) * 0.6180339887 + seed * 0.41421356) % 1;
      pixels[image * 64 + i] = noise * 0.5 + (quarter === label ? 0.5 : 0);
    }
  return { pixels, labels };
}

const model = () =>
  new nn.Sequential(
    new nn.Conv2d(1, 8, 3, { padding: 1 }),
    new nn.GroupNorm(4, 8),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    new nn.Linear(128, 16),
    new nn.GELU(),
    new nn.Linear(16, classes),
  );

interface Run {
  readonly losses: number[];
  readonly weights: Float32Array;
}

/** Trains on new batches of 16 in the same tensors, as a job's member does. */
async function train(steps: number, atStep: (step: number) => void = () => {}): Promise<Run> {
  torch.manualSeed(7);
  const of = model();
  const flat = new torch.FlatParameters(of.namedParameters());
  const optimizer = new optim.FlatOptimizer(optim.sgd({ learningRate: 0.1, momentum: 0.9 }), flat);
  const input = torch.tensor(new Float32Array(16 * 64), { shape: [16, 1, 8, 8] });
  const target = torch.tensor(new Int32Array(16));
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    const { pixels, labels } = images(16, step);
    input.write(pixels);
    target.write(labels);
    flat.zeroGradients();
    const loss = torch.crossEntropy(of.forward(input), target);
    loss.backward();
    loss.keep();
    optimizer.step();
    losses.push(await loss.item());
    atStep(step);
  }
  return { losses, weights: await flat.readWeights() };
}

test("a convolution network with group norm learns", async () => {
  const { losses } = await train(20);
  expect(losses[0]).toBeGreaterThan(1);
  expect(losses.at(-1)).toBeLessThan(0.1);
});

test("the same seed and adapter give the same bits", async () => {
  expect(await train(5)).toEqual(await train(5));
});

test("after the first steps a step makes no buffer, pipeline or bind group", async () => {
  const { stats } = await torch.getDevice();
  const made: object[] = [];
  await train(8, () => {
    const { dispatches: _, submits: __, ...kept } = stats.snapshot();
    made.push(kept);
  });
  expect(made.slice(4)).toEqual(new Array(4).fill(made[3]));
});

test("the initial weights are the same in every browser and in Node", () => {
  torch.manualSeed(0);
  const { source } = new nn.Linear(2, 2).weight;
  if (source.kind !== "storage") throw new Error("A new parameter has no storage.");
  expect([...(source.storage.hostWords ?? [])]).toEqual(golden.uniform);
  const normal = nn.init.normal_(torch.tensor(new Float32Array(4))).source;
  if (normal.kind !== "storage") throw new Error("A tensor of data has no storage.");
  expect([...(normal.storage.hostWords ?? [])]).toEqual(golden.normal);
});

/** As Node computes them. */
const golden = {
  uniform: [-0.6324024200439453, 0.4877718985080719, 0.6081147789955139, 0.7011492252349854],
  normal: [-0.38316649198532104, -0.24110734462738037, -0.36114302277565, 1.1849241256713867],
};

test("parameter groups have options of their own", async () => {
  const [a, b] = [torch.tensor([1], { requiresGrad: true }), torch.tensor([1], { requiresGrad: true })];
  const optimizer = new optim.SGD([{ parameters: [a] }, { parameters: [b], learningRate: 0.5 }], {
    learningRate: 0.25,
  });
  torch.sum(torch.add(a, b)).backward();
  optimizer.step();
  expect([await a.item(), await b.item()]).toEqual([0.75, 0.5]);
  optimizer.zeroGrad();
  expect([await a.grad!.item(), await b.grad!.item()]).toEqual([0, 0]);
});

test("an optimizer goes on from its own state", async () => {
  const start = () => torch.tensor([1, -2, 3], { requiresGrad: true });
  const descend = (weights: torch.Tensor, optimizer: optim.Optimizer) => {
    optimizer.zeroGrad();
    torch.sum(torch.mul(weights, weights)).backward();
    optimizer.step();
  };
  const whole = start();
  const wholeOptimizer = new optim.AdamW([whole], { learningRate: 0.1 });
  for (let step = 0; step < 3; step++) descend(whole, wholeOptimizer);

  const before = start();
  const first = new optim.AdamW([before], { learningRate: 0.1 });
  descend(before, first);
  descend(before, first);
  const after = torch.tensor(await before.data(), { requiresGrad: true });
  const second = new optim.AdamW([after], { learningRate: 7 });
  second.loadStateDict(await first.stateDict());
  descend(after, second);
  expect(await after.data()).toEqual(await whole.data());
});

test("a state moves from the GPU to the CPU and back", async () => {
  const spec = optim.adam({ learningRate: 0.1, amsgrad: true });
  const weights = torch.tensor([1, -2, 3, 4, 5], { requiresGrad: true });
  const flat = new torch.FlatParameters([["weights", weights]]);
  const onGpu = new optim.FlatOptimizer(spec, flat);
  const onCpu = new optim.OffloadedOptimizer(spec, flat.layout.length);
  const gradients = async () => {
    flat.zeroGradients();
    torch.sum(torch.mul(weights, weights)).backward();
    return flat.readGradients();
  };
  await gradients();
  onGpu.step();
  onCpu.loadState(await onGpu.readState(), onGpu.steps);
  const values = await flat.readWeights();
  onCpu.step(values, await gradients());
  flat.writeWeights(values);
  onGpu.writeState(onCpu.state(), onCpu.steps);
  await gradients();
  onGpu.step();
  expect(onGpu.steps).toBe(3);

  let [w, m, v, largest] = [3, 0, 0, 0];
  for (let t = 1; t <= 3; t++) {
    const g = 2 * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    largest = Math.max(largest, v);
    w -= (0.1 / (1 - 0.9 ** t)) * (m / (Math.sqrt(largest) / Math.sqrt(1 - 0.999 ** t) + 1e-8));
  }
  // Three steps that each round to 2^-24 of the value a few times.
  expect(Math.abs((await weights.data())[2]! - w)).toBeLessThan(3e-6);
});

test("optimizers refuse what they can't train", () => {
  expect(() => new optim.Adam([])).toThrow("The optimizer got no parameters");
  const a = torch.tensor([1], { requiresGrad: true });
  expect(() => new optim.SGD([a, a])).toThrow("The optimizer got a parameter twice");
});

test("batch norm keeps running moments in training and uses them in evaluation", async () => {
  const norm = new nn.BatchNorm1d(2, { momentum: null, affine: false });
  norm.forward(
    torch.tensor([
      [0, 10],
      [2, 14],
    ]),
  );
  norm.forward(
    torch.tensor([
      [4, 10],
      [6, 10],
    ]),
  );
  // Without a momentum the moments are means over the batches: means [1, 12] and [5, 10], variances [2, 8] and [2, 0].
  expect(await norm.runningMean!.array()).toEqual([3, 11]);
  expect(await norm.runningVar!.array()).toEqual([2, 4]);
  expect(await norm.numBatchesTracked!.item()).toBe(2);
  norm.eval();
  const output = await norm.forward(torch.tensor([[3, 13]])).data();
  expect(output[0]).toBeCloseTo(0, 6);
  expect(output[1]).toBeCloseTo(1, 5);
});

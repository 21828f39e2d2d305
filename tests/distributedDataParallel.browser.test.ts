import { afterAll, expect, test } from "vitest";
import { parseIdx } from "../src/data/idx";
import { readSafetensors } from "../src/data/safetensors";
import { DistributedDataParallel } from "../src/distributed/distributedDataParallel";
import { makeTabRanks, onAll } from "../src/distributed/testing/tabRanks";
import { requestDevice } from "../src/gpu";
import { Flatten, GELU, Linear, ReLU, Sequential } from "../src/nn";
import { SGD } from "../src/optim";
import { crossEntropy, setDefaultDevice, tensor } from "../src/tensor";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

interface Run {
  readonly losses: readonly number[];
  readonly batches: readonly (readonly number[])[];
  readonly initial: string;
}

async function reference(path: string): Promise<Response> {
  const response = await fetch(`/@reference/${path}`);
  if (!response.ok) throw new Error(`The reference run can't be read: ${await response.text()}`);
  return response;
}
const bytes = async (path: string) => new Uint8Array(await (await reference(path)).arrayBuffer());
const weights = async (name: string) => readSafetensors(await bytes(`training/${name}`)).tensors;
const idx = async (name: string, shape: readonly number[]) => parseIdx(await bytes(`mnist/${name}`), shape, name).data;

const pixelsPerImage = 28 * 28;
const makeMlp = () =>
  new Sequential(new Flatten(), new Linear(784, 128), new ReLU(), new Linear(128, 64), new GELU(), new Linear(64, 10));

test("three ranks follow PyTorch's DistributedDataParallel over gloo to 1e-4 at each of 40 steps", async () => {
  const run: Run = await (await reference("training/ddp3-mlp-sgd.json")).json();
  const images = await idx("train-images-idx3-ubyte", [60_000, 28, 28]);
  const labels = await idx("train-labels-idx1-ubyte", [60_000]);
  const initial = await weights(run.initial);
  const options = { learningRate: 0.05, momentum: 0.9, weightDecay: 1e-4 };
  const replicas = await onAll(makeTabRanks(3), async (processGroup) => {
    const module = makeMlp();
    // The others get them from rank 0.
    if (processGroup.rank === 0) module.loadStateDict(initial);
    // Two buckets: the last two layers, and the first.
    const model = await DistributedDataParallel.create(module, { processGroup, bucketCapMb: 0.03 });
    return { rank: processGroup.rank, model, optimizer: new SGD(model.parameters(), options) };
  });
  expect(replicas[0]!.model.bucketLengths).toEqual([128 * 64 + 64 + 64 * 10 + 64, 784 * 128 + 128]);
  expect(run.losses).toHaveLength(40);
  for (const [step, batch] of run.batches.entries()) {
    const losses = replicas.map(({ rank, model, optimizer }) => {
      const samples = batch.filter((_, index) => index % 3 === rank);
      const pixels = samples.flatMap((sample) => [
        ...images.subarray(sample * pixelsPerImage, (sample + 1) * pixelsPerImage),
      ]);
      const input = tensor(
        Float32Array.from(pixels, (pixel) => pixel / 255),
        { shape: [samples.length, 1, 28, 28] },
      );
      const target = tensor(Int32Array.from(samples, (sample) => labels[sample]!));
      optimizer.zeroGrad();
      const loss = crossEntropy(model.forward(input), target);
      loss.backward();
      return loss;
    });
    await Promise.all(replicas.map(({ model }) => model.averageGradients()));
    for (const { optimizer } of replicas) optimizer.step();
    const values = await Promise.all(losses.map((loss) => loss.item()));
    const mean = values.reduce((sum, value) => sum + value, 0) / 3;
    expect(Math.abs(mean / run.losses[step]! - 1), `step ${step}: ${mean}, PyTorch's ${run.losses[step]}`).toBeLessThan(
      1e-4,
    );
  }
  const before = await weights(run.initial);
  const after = await weights("ddp3-mlp-sgd.final.safetensors");
  const [first, ...others] = replicas.map(({ model }) => model.module.stateDict());
  for (const [name, value] of first!) {
    const values = await value.data();
    for (const other of others) expect(await other.get(name)!.data()).toEqual(values);
    let [missed, way] = [0, 0];
    for (const [i, end] of Array.from(after.get(name)!.data, Number).entries()) {
      missed += (values[i]! - end) ** 2;
      way += (Number(before.get(name)!.data[i]) - end) ** 2;
    }
    expect(Math.sqrt(missed / way), `${name}: the part of the way that it is off`).toBeLessThan(1e-4);
  }
});

import { beforeAll, expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import type { LabelledImages, Mnist } from "../data/mnist";
import { type Device, requestDevice } from "../gpu";
import { OffloadedOptimizer } from "../optim";
import { EngineReplica } from "./engineReplica";
import { metricSlotCount, metricSlots } from "./replica";
import { defaultSpec, type ModelName, modelNames } from "./spec";

const seed = 11;
const random = seededRandom(seed);
const digits = (count: number): LabelledImages => ({
  count,
  rows: 28,
  columns: 28,
  images: Uint8Array.from({ length: count * 784 }, () => (random() < 0.8 ? 0 : Math.floor(random() * 256))),
  labels: Uint8Array.from({ length: count }, () => Math.floor(random() * 10)),
});
const data: Mnist = { train: digits(40), validation: digits(20) };

let device: Device;
beforeAll(async () => {
  device = await requestDevice();
});

const make = (model: ModelName) => new EngineReplica(device, defaultSpec(model), data);
const bufferFor = (replica: EngineReplica) => new Float32Array(replica.layout.length + metricSlotCount);
const range = (from: number, to: number) => Uint32Array.from({ length: to - from }, (_, i) => from + i);
const largest = (values: Float32Array) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

for (const model of modelNames) {
  test(`${model}: gradients of 1 and 19 samples add up to those of all 20, metrics too (seed ${seed})`, async () => {
    const replica = make(model);
    const [whole, one, rest] = [bufferFor(replica), bufferFor(replica), bufferFor(replica)];
    await replica.gradients(range(0, 20), 20, whole);
    await replica.gradients(range(0, 1), 20, one);
    await replica.gradients(range(1, 20), 20, rest);
    const scale = largest(whole.subarray(0, replica.layout.length));
    expect(scale).toBeGreaterThan(1e-3);
    const differences = whole.map((value, i) => value - one[i] - rest[i]);
    expect(largest(differences.subarray(0, replica.layout.length)) / scale).toBeLessThan(1e-6);
    const metrics = whole.subarray(replica.layout.length);
    expect(metrics[metricSlots.samples]).toBe(20);
    expect(metrics[metricSlots.loss] / 20).toBeCloseTo(Math.log(10), 0);
    expect(Math.abs(differences[replica.layout.length + metricSlots.loss])).toBeLessThan(1e-3);
    expect(differences[replica.layout.length + metricSlots.correct]).toBe(0);
  });

  test(`${model}: a step on the GPU and one offloaded to the CPU leave the same weights and state (seed ${seed})`, async () => {
    const [alone, offloaded] = [make(model), make(model)];
    const spec = defaultSpec(model);
    const state = await offloaded.readState();
    const optimizer = new OffloadedOptimizer(spec.optimizer, offloaded.layout.length);
    const gradients = bufferFor(offloaded);
    for (let step = 0; step < 3; step++) {
      await alone.localStep(range(0, 20), 20, 0.05);
      await offloaded.gradients(range(0, 20), 20, gradients);
      optimizer.step(state.weights, gradients.subarray(0, offloaded.layout.length), 0.05);
      offloaded.writeWeights(state.weights);
    }
    const after = await alone.readState();
    expect(after.optimizerSteps).toBe(3);
    expect(largest(after.weights.map((value, i) => value - state.weights[i]))).toBeLessThan(1e-6);
    const [momentum] = after.optimizer;
    expect(largest(momentum.map((value, i) => value - optimizer.state()[0][i]))).toBeLessThan(1e-5);
  });
}

test("a step whose gradients aren't finite changes no bit, nor do those under way behind it, and the next goes on", async () => {
  const [replica, undisturbed] = [make("mlp"), make("mlp")];
  const before = await replica.readState();
  await Promise.all([replica.localStep(range(0, 20), 20, 0.05), undisturbed.localStep(range(0, 20), 20, 0.05)]);
  const { weights, optimizer } = await replica.readState();
  expect(weights).not.toEqual(before.weights);
  const spoiled = weights.map((value, i) => (i === 5 ? Infinity : value));
  replica.writeWeights(spoiled);
  const skipped = await Promise.all([20, 7, 20].map((end) => replica.localStep(range(0, end), end, 0.05)));
  expect(skipped.map(({ applied }) => applied)).toEqual([false, false, false]);
  expect(await replica.readState()).toEqual({ weights: spoiled, optimizer, optimizerSteps: 1 });
  replica.writeWeights(weights);
  const [next, same] = await Promise.all([
    replica.localStep(range(20, 40), 20, 0.05),
    undisturbed.localStep(range(20, 40), 20, 0.05),
  ]);
  expect(next).toEqual({ sums: same.sums, applied: true });
  expect(await replica.readState()).toEqual(await undisturbed.readState());
});

test("the same seed gives the same weights, another seed others", async () => {
  const first = await make("mlp").readState();
  expect((await make("mlp").readState()).weights).toEqual(first.weights);
  const other = new EngineReplica(device, { ...defaultSpec("mlp"), seed: 2 }, data);
  expect((await other.readState()).weights).not.toEqual(first.weights);
});

test("after warm-up a step makes no buffer, pipeline or bind group, whatever the share", async () => {
  const replica = make("mlp");
  const into = bufferFor(replica);
  const shares = [20, 7, 33, 16, 1];
  const run = async () => {
    for (const share of shares) await replica.gradients(range(0, share), 40, into);
    for (const share of shares) await replica.localStep(range(0, share), 40, 0.05);
  };
  await run();
  await run();
  const { buffers, pipelines, bindGroups } = device.stats;
  await run();
  expect({
    buffers: device.stats.buffers,
    pipelines: device.stats.pipelines,
    bindGroups: device.stats.bindGroups,
  }).toEqual({
    buffers,
    pipelines,
    bindGroups,
  });
});

test("evaluation over any slices adds up to that over all, and guesses come with probabilities", async () => {
  const replica = make("mlp");
  const whole = await replica.evaluate(0, 20);
  const [front, back] = [await replica.evaluate(0, 3), await replica.evaluate(3, 20)];
  expect(whole.count).toBe(20);
  expect(front.correct + back.correct).toBe(whole.correct);
  expect((front.loss * 3 + back.loss * 17) / 20).toBeCloseTo(whole.loss, 5);
  const predictions = await replica.predict([4, 9]);
  expect(predictions.map(({ index, label }) => [index, label])).toEqual([
    [4, data.validation.labels[4]],
    [9, data.validation.labels[9]],
  ]);
  for (const { probability } of predictions) {
    expect(probability).toBeGreaterThanOrEqual(0.1);
    expect(probability).toBeLessThanOrEqual(1);
  }
});

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { Linear } from "../nn";
import { SGD } from "../optim";
import { setDefaultDevice, tensor } from "../tensor";
import { DistributedDataParallel } from "./distributedDataParallel";
import { GradScaler } from "./gradScaler";
import { makeTabRanks, onAll } from "./testing/tabRanks";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

async function makeRanks(worldSize: number, initScale = 1024) {
  return onAll(makeTabRanks(worldSize), async (processGroup) => {
    const model = await DistributedDataParallel.create(new Linear(2, 1, { bias: false }), { processGroup });
    model.module.weight.write([1, 1]);
    return {
      rank: processGroup.rank,
      model,
      optimizer: new SGD(model.parameters(), { learningRate: 0.5 }),
      scaler: new GradScaler({ initScale, growthInterval: 2, processGroup }),
    };
  });
}

/** The loss's gradient is the input. */
async function step(
  { rank, model, optimizer, scaler }: Awaited<ReturnType<typeof makeRanks>>[number],
  inputOf: (rank: number) => number[],
  isAveraged = true,
): Promise<boolean> {
  optimizer.zeroGrad();
  scaler.scale(model.forward(tensor([inputOf(rank)])).sum()).backward();
  if (isAveraged) await model.averageGradients();
  const isTaken = await scaler.step(optimizer);
  scaler.update();
  return isTaken;
}

test("a step with scaled losses is the step without a scale", async () => {
  const ranks = await makeRanks(2);
  expect(await Promise.all(ranks.map((one) => step(one, (rank) => [1 + rank, 3])))).toEqual([true, true]);
  for (const { model } of ranks) expect(await model.module.weight.array()).toEqual([[0.25, -0.5]]);
});

test.each([true, false])(
  "infinity on one rank makes all skip and all halve the scale (averaged: %s)",
  async (isAveraged) => {
    const ranks = await makeRanks(3);
    const inputOf = (rank: number) => [rank === 1 ? 3e38 : 1, 1];
    expect(await Promise.all(ranks.map((one) => step(one, inputOf, isAveraged)))).toEqual([false, false, false]);
    for (const { model, scaler } of ranks) {
      expect(await model.module.weight.array()).toEqual([[1, 1]]);
      expect(scaler.getScale()).toBe(512);
    }
    expect(await Promise.all(ranks.map((one) => step(one, () => [1, 1])))).toEqual([true, true, true]);
  },
);

test("the scale doubles after enough good steps, and its state can be taken over", async () => {
  const [one] = await makeRanks(1, 8);
  const { scaler } = one!;
  await step(one!, () => [0, 0]);
  expect(scaler.stateDict()).toEqual({ scale: 8, growthTracker: 1 });
  await step(one!, () => [0, 0]);
  expect(scaler.stateDict()).toEqual({ scale: 16, growthTracker: 0 });
  const other = new GradScaler();
  expect(other.getScale()).toBe(65_536);
  other.loadStateDict(scaler.stateDict());
  expect(other.getScale()).toBe(16);
});

test("unscale_ shows the gradients as they are, once a step", async () => {
  const [one] = await makeRanks(1);
  const { model, optimizer, scaler } = one!;
  scaler.scale(model.forward(tensor([[3, 5]])).sum()).backward();
  await scaler.unscale_(optimizer);
  expect(await model.module.weight.grad!.array()).toEqual([[3, 5]]);
  await expect(scaler.unscale_(optimizer)).rejects.toThrow("the gradients were unscaled already");
  expect(await scaler.step(optimizer)).toBe(true);
  expect(await model.module.weight.array()).toEqual([[-0.5, -1.5]]);
  scaler.update();
  expect(() => scaler.update()).toThrow("update() was called before step()");
});

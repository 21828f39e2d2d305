import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { Linear, type Module, MSELoss, Sequential, Tanh } from "../nn";
import { AdamW, adamw } from "../optim";
import { setDefaultDevice, tensor } from "../tensor";
import { DistributedDataParallel } from "./distributedDataParallel";
import { GradScaler } from "./gradScaler";
import { makeTabRanks, onAll } from "./testing/tabRanks";
import { ZeroRedundancyOptimizer } from "./zeroRedundancyOptimizer";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const rows = [
  [0.5, -1],
  [2, 0.25],
  [-1.5, 1],
  [0.75, 3],
];
const targets = [[1], [0], [-1], [0.5]];
const criterion = new MSELoss();
const makeNet = () => new Sequential(new Linear(2, 8), new Tanh(), new Linear(8, 1));
const lossOf = (model: Module, from: number, to: number) =>
  criterion.forward(model.forward(tensor(rows.slice(from, to))), tensor(targets.slice(from, to)));
const options = { learningRate: 0.05, weightDecay: 0.1 };

async function makeReplicas(worldSize: number) {
  return onAll(makeTabRanks(worldSize), async (processGroup) => {
    const model = await DistributedDataParallel.create(makeNet(), { processGroup });
    return { rank: processGroup.rank, model, optimizer: new ZeroRedundancyOptimizer(model, adamw(options)) };
  });
}
type Replica = Awaited<ReturnType<typeof makeReplicas>>[number];

/** Rank 0 has one sample, rank 1 the other three. */
const sharesOf = (rank: number) => (rank === 0 ? ([0, 1] as const) : ([1, 4] as const));

async function takeStep({ rank, model, optimizer }: Replica): Promise<void> {
  const [from, to] = sharesOf(rank);
  optimizer.zeroGrad();
  lossOf(model, from, to).backward();
  await optimizer.step({ samples: to - from });
}

async function expectWeights(replicas: readonly Replica[], whole: Module): Promise<void> {
  for (const [name, parameter] of whole.stateDict()) {
    const expected = await parameter.data();
    const [first, ...others] = await Promise.all(
      replicas.map(({ model }) => model.module.stateDict().get(name)!.data()),
    );
    for (const other of others) expect(other).toEqual(first);
    for (const [i, value] of expected.entries()) expect(Math.abs(first![i]! - value), name).toBeLessThan(1e-5);
  }
}

test("ranks with a part of the state each train as one process with the whole batch", async () => {
  const replicas = await makeReplicas(2);
  const whole = makeNet();
  whole.loadStateDict(replicas[0]!.model.module.stateDict());
  const optimizer = new AdamW(whole.parameters(), options);
  for (let step = 0; step < 4; step += 1) {
    await Promise.all(replicas.map(takeStep));
    optimizer.zeroGrad();
    lossOf(whole, 0, 4).backward();
    optimizer.step();
  }
  await expectWeights(replicas, whole);
  expect(replicas[0]!.optimizer.steps).toBe(4);
  // 24 + 1 weights in four padded places of 64; two moments for a half of them, and for the mirror.
  for (const each of replicas) expect(each.optimizer.stateLength).toBe(2 * 2 * 128);
});

test("those left after a loss go on with the whole state, and so does another world from a checkpoint", async () => {
  const replicas = await makeReplicas(3);
  const train = (each: readonly Replica[], share: (rank: number) => readonly [number, number]) =>
    Promise.all(
      each.map(async ({ rank, model, optimizer }) => {
        optimizer.zeroGrad();
        lossOf(model, ...share(rank)).backward();
        await optimizer.step({ samples: share(rank)[1] - share(rank)[0] });
      }),
    );
  const whole = makeNet();
  whole.loadStateDict(replicas[0]!.model.module.stateDict());
  const wholeOptimizer = new AdamW(whole.parameters(), options);
  const wholeStep = () => {
    wholeOptimizer.zeroGrad();
    lossOf(whole, 0, 4).backward();
    wholeOptimizer.step();
  };
  await train(replicas, (rank) => (rank === 2 ? [2, 4] : [rank, rank + 1]));
  wholeStep();
  const [first, lost, last] = replicas;
  lost!.model.group.destroy();
  const left = [first!, last!];
  await Promise.all(left.map(async ({ model, optimizer }) => optimizer.reform(model.group.newGroup([0, 2])!)));
  await train(left, (rank) => (rank === 0 ? [0, 2] : [2, 4]));
  wholeStep();
  await expectWeights(left, whole);
  const [state] = await Promise.all(left.map(({ optimizer }) => optimizer.stateDict()));
  const others = await makeReplicas(2);
  await Promise.all(
    others.map(async ({ model, optimizer }) => {
      model.module.loadStateDict(first!.model.module.stateDict());
      await optimizer.loadStateDict(state!);
    }),
  );
  await Promise.all(others.map(takeStep));
  wholeStep();
  await expectWeights(others, whole);
});

test("a gradient scaler makes all skip a step of it", async () => {
  const replicas = await makeReplicas(2);
  const before = await replicas[0]!.model.flat.readWeights();
  const taken = await Promise.all(
    replicas.map(async ({ rank, model, optimizer }) => {
      const scaler = new GradScaler({ processGroup: model.group });
      scaler.scale(lossOf(model, 0, 4).mul(rank === 1 ? 3e38 : 1)).backward();
      return scaler.step(optimizer);
    }),
  );
  expect(taken).toEqual([false, false]);
  expect(await replicas[1]!.model.flat.readWeights()).toEqual(before);
});

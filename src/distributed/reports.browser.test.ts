// What users of PyTorch reported of its collectives and of its DistributedDataParallel, with the right answers.
import { afterAll, describe, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { Embedding, Linear, Module, MSELoss, parameter } from "../nn";
import { SGD } from "../optim";
import { grad, manualSeed, setDefaultDevice, type Tensor, tensor } from "../tensor";
import { DistributedDataParallel, type DistributedDataParallelOptions } from "./distributedDataParallel";
import { GradScaler } from "./gradScaler";
import { makeTabRanks, onAll } from "./testing/tabRanks";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const replicate = <M extends Module>(
  worldSize: number,
  make: () => M,
  options: DistributedDataParallelOptions = {},
): Promise<DistributedDataParallel<M>[]> =>
  onAll(makeTabRanks(worldSize), (processGroup) =>
    DistributedDataParallel.create(make(), { processGroup, ...options }),
  );

const averageAll = (replicas: readonly DistributedDataParallel[]) =>
  Promise.all(replicas.map((replica) => replica.averageGradients()));

const values = async (of: Tensor | null) => (of === null ? null : [...(await of.data())]);

test("noSync around backward: four batches of 16 are one of 64, on each of two ranks", async () => {
  const make = () => {
    manualSeed(5);
    return new Linear(3, 1);
  };
  const replicas = await replicate(2, make);
  const whole = make();
  const rows = Array.from({ length: 128 }, (_, row) => [0, 1, 2].map((column) => Math.sin(3 * row + column)));
  const lossOf = (model: Module, from: number, to: number) =>
    new MSELoss().forward(model.forward(tensor(rows.slice(from, to))), tensor(rows.slice(from, to).map(([x]) => [x!])));
  for (const [rank, replica] of replicas.entries())
    for (let batch = 0; batch < 4; batch += 1) {
      const from = 64 * rank + 16 * batch;
      const loss = lossOf(replica, from, from + 16).div(4);
      if (batch < 3) replica.noSync(() => loss.backward());
      else loss.backward();
    }
  await averageAll(replicas);
  lossOf(whole, 0, 128).backward();
  const [expected, ...got] = await Promise.all(
    [whole, ...replicas].map((model) => values(model.parameters()[0]!.grad)),
  );
  for (const each of got)
    for (const [index, value] of expected!.entries()) expect(Math.abs(each![index]! - value)).toBeLessThan(1e-6);
});

/** Two weights, of which a pass uses one (pytorch#69031). */
class OneOfTwo extends Module {
  readonly first = new Linear(1, 1, { bias: false });
  readonly second = new Linear(1, 1, { bias: false });
  uses: "first" | "second" = "first";

  forward(input: Tensor): Tensor {
    return this[this.uses].forward(input);
  }
}

test("findUnusedParameters: a weight that only an earlier pass under noSync used is averaged too", async () => {
  const replicas = await replicate(2, () => new OneOfTwo(), { findUnusedParameters: true });
  for (const [rank, replica] of replicas.entries()) {
    replica.noSync(() =>
      replica
        .forward(tensor([[rank + 1]]))
        .sum()
        .backward(),
    );
    replica.module.uses = "second";
    replica
      .forward(tensor([[10 * rank + 2]]))
      .sum()
      .backward();
  }
  await averageAll(replicas);
  for (const { module } of replicas) {
    expect(await values(module.first.weight.grad)).toEqual([1.5]);
    expect(await values(module.second.weight.grad)).toEqual([7]);
  }
});

test("join goes together with noSync", async () => {
  const groups = makeTabRanks(2);
  const steps = await onAll(groups, async (processGroup) => {
    const replica = await DistributedDataParallel.create(new Linear(1, 1, { bias: false }), { processGroup });
    replica.module.weight.write([0]);
    const optimizer = new SGD(replica.parameters(), { learningRate: 1 });
    await replica.join(async () => {
      // Rank 0 averages once, rank 1 twice; both accumulate two passes before.
      for (let step = 0; step <= processGroup.rank; step += 1) {
        optimizer.zeroGrad();
        replica.noSync(() =>
          replica
            .forward(tensor([[2]]))
            .sum()
            .backward(),
        );
        replica
          .forward(tensor([[4]]))
          .sum()
          .backward();
        await replica.averageGradients();
        optimizer.step();
      }
    });
    return values(replica.module.weight);
  });
  // Six from both, then half of six, as every step divides by two.
  expect(steps).toEqual([[-9], [-9]]);
});

/** A gradient penalty, with a bias that the penalty doesn't reach (pytorch#47562). */
class Penalised extends Module {
  readonly w = parameter(tensor([3]));
  readonly b = parameter(tensor([0]));

  forward(x: Tensor): Tensor {
    return x.mul(x).mul(this.w).add(x.div(x).mul(this.b));
  }
}

test("the gradient of a gradient is averaged", async () => {
  const replicas = await replicate(2, () => new Penalised());
  for (const [rank, replica] of replicas.entries()) {
    const x = tensor([rank + 1], { requiresGrad: true });
    const [slope] = grad([replica.forward(x).sum()], [x], { createGraph: true });
    // (2 w x)^2 has the gradient 8 w x^2 by w, and none by b.
    slope!.mul(slope!).sum().backward();
  }
  await averageAll(replicas);
  for (const { module } of replicas) {
    expect(await values(module.w.grad)).toEqual([(8 * 3 * 1 + 8 * 3 * 4) / 2]);
    expect(await values(module.b.grad)).toEqual([0]);
  }
});

/** An embedding whose weights are the output layer's. */
class Tied extends Module {
  readonly embedding = new Embedding(3, 2);
  readonly output = this.embedding.weight;

  forward(input: Tensor): Tensor {
    return this.embedding.forward(input).matmul(this.output.transpose(0, 1));
  }
}

test("a weight under two names is averaged once, with both parts of its gradient", async () => {
  const replicas = await replicate(2, () => new Tied());
  const whole = new Tied();
  whole.loadStateDict(replicas[0]!.module.stateDict());
  const loss = (model: Module, rank: number) => model.forward(tensor(Int32Array.of(rank))).sum();
  for (const [rank, replica] of replicas.entries()) loss(replica, rank).backward();
  await averageAll(replicas);
  for (const rank of replicas.keys()) loss(whole, rank).mul(0.5).backward();
  const expected = await values(whole.embedding.weight.grad);
  for (const { module } of replicas)
    for (const [index, value] of (await values(module.embedding.weight.grad))!.entries())
      expect(Math.abs(value - expected![index]!)).toBeLessThan(1e-6);
});

test("gradients that aren't zeroed between two averagings are the sum of both means", async () => {
  const replicas = await replicate(2, () => new Linear(1, 1, { bias: false }));
  for (const factor of [1, 10]) {
    for (const [rank, replica] of replicas.entries())
      replica
        .forward(tensor([[factor * (rank + 1)]]))
        .sum()
        .backward();
    await averageAll(replicas);
  }
  for (const { module } of replicas) expect(await values(module.weight.grad)).toEqual([1.5 + 15]);
});

/** Counts its passes in a buffer of integers. */
class Counting extends Module {
  readonly weight = parameter(tensor([1]));
  readonly passes = tensor(Int32Array.of(0, -7));

  forward(input: Tensor): Tensor {
    return input.mul(this.weight);
  }
}

test("buffers of integers are rank 0's too", async () => {
  const replicas = await replicate(2, () => new Counting());
  for (const [rank, replica] of replicas.entries()) {
    replica.module.passes.write(Int32Array.of(2 ** 30 + rank, rank));
    replica
      .forward(tensor([1]))
      .sum()
      .backward();
  }
  await averageAll(replicas);
  for (const { module } of replicas) expect(await values(module.passes)).toEqual([2 ** 30, 0]);
});

describe("a column of a matrix (gloo takes its memory, and with it the neighbour's numbers)", () => {
  const column = (rank: number) =>
    tensor([
      [rank + 1, 100],
      [10 * (rank + 1), 100],
    ]).select(1, 0);

  test("is what it shows wherever it is only read", async () => {
    const gathered = await onAll(makeTabRanks(2), async (group) => {
      const [lists, scattered] = [[tensor([0, 0]), tensor([0, 0])], tensor([0, 0])];
      await group.allGather(lists, column(group.rank)).wait();
      await group.scatter(scattered, group.rank === 1 ? [column(4), column(5)] : null, 1).wait();
      return Promise.all([...lists, scattered].map(values));
    });
    const both = [
      [1, 10],
      [2, 20],
    ];
    expect(gathered).toEqual([
      [...both, [5, 50]],
      [...both, [6, 60]],
    ]);
  });

  test("takes what comes", async () => {
    const outcomes = await onAll(makeTabRanks(2), async (group) => {
      const reduced = column(group.rank);
      await group.allReduce(reduced).wait();
      const broadcast = column(group.rank);
      await group.broadcast(broadcast, 1).wait();
      return [await values(reduced), await values(broadcast)];
    });
    for (const outcome of outcomes)
      expect(outcome).toEqual([
        [3, 30],
        [2, 20],
      ]);
  });
});

test("a scaler and an early end: infinity on the rank that still has inputs makes all skip", async () => {
  const outcomes = await onAll(makeTabRanks(2), async (processGroup) => {
    const replica = await DistributedDataParallel.create(new Linear(1, 1, { bias: false }), { processGroup });
    replica.module.weight.write([1]);
    const optimizer = new SGD(replica.parameters(), { learningRate: 1 });
    const scaler = new GradScaler({ initScale: 2, processGroup });
    scaler.scale(replica.forward(tensor([[processGroup.rank === 1 ? 3e38 : 1]])).sum()).backward();
    await replica.averageGradients();
    const isTaken = await scaler.step(optimizer);
    scaler.update();
    return [isTaken, scaler.getScale(), await values(replica.module.weight)];
  });
  expect(outcomes).toEqual([
    [false, 1, [1]],
    [false, 1, [1]],
  ]);
});

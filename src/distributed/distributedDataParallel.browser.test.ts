import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { BatchNorm1d, Linear, Module, MSELoss, Sequential, Tanh } from "../nn";
import { SGD } from "../optim";
import { manualSeed, setDefaultDevice, type Tensor, tensor } from "../tensor";
import {
  averageGradients,
  DistributedDataParallel,
  type DistributedDataParallelOptions,
} from "./distributedDataParallel";
import { makeTabRanks, onAll } from "./testing/tabRanks";

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
const makeNet = () => new Sequential(new Linear(2, 3), new Tanh(), new Linear(3, 1));
const lossOf = (model: Module, from: number, to: number) =>
  criterion.forward(model.forward(tensor(rows.slice(from, to))), tensor(targets.slice(from, to)));

/** Replicas on all ranks. They begin with different weights, unless all ranks get those of rank 0. */
const replicate = <M extends Module>(
  groups: ReturnType<typeof makeTabRanks>,
  make: () => M,
  options: DistributedDataParallelOptions = {},
) => onAll(groups, (processGroup) => DistributedDataParallel.create(make(), { processGroup, ...options }));

function copyOf<M extends Module>(model: DistributedDataParallel<M>, make: () => M): M {
  const copy = make();
  copy.loadStateDict(model.module.stateDict());
  return copy;
}

/** Expects the gradients of all replicas to be one model's, and those of the replicas to be the same to the bit. */
async function expectGradients(replicas: readonly DistributedDataParallel[], whole: Module): Promise<void> {
  const [first, ...others] = await Promise.all(replicas.map((replica) => gradients(replica.module)));
  for (const other of others) expect(other).toEqual(first);
  const expected = await gradients(whole);
  expect(Object.keys(first!)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected))
    for (const [index, value] of values.entries())
      expect(Math.abs(first![name]![index]! - value), `${name}[${index}]`).toBeLessThan(1e-6);
}

async function gradients(module: Module): Promise<Record<string, number[]>> {
  const named = module.namedParameters().map(async ([name, { grad }]) => [name, grad ? [...(await grad.data())] : []]);
  return Object.fromEntries(await Promise.all(named));
}

const manyBuckets = { bucketCapMb: 1e-6 };

test("replicas with halves of the batch train as one model with the whole batch, bit-identical to each other", async () => {
  const replicas = await replicate(makeTabRanks(2), makeNet, manyBuckets);
  // Four parameters, the last one first, each in a bucket of its own.
  expect(replicas[0]!.bucketLengths).toEqual([64, 64, 64, 64]);
  const whole = copyOf(replicas[0]!, makeNet);
  const optimizers = replicas.map((replica) => new SGD(replica.parameters(), { learningRate: 0.1 }));
  const optimizer = new SGD(whole.parameters(), { learningRate: 0.1 });
  for (let step = 0; step < 5; step += 1) {
    for (const [rank, replica] of replicas.entries()) {
      optimizers[rank]!.zeroGrad();
      lossOf(replica, 2 * rank, 2 * rank + 2).backward();
    }
    await Promise.all(replicas.map((replica) => replica.averageGradients()));
    for (const each of optimizers) each.step();
    optimizer.zeroGrad();
    lossOf(whole, 0, 4).backward();
    optimizer.step();
  }
  for (const [name, parameter] of whole.stateDict()) {
    const expected = await parameter.data();
    const [first, second] = await Promise.all(replicas.map((replica) => replica.module.stateDict().get(name)!.data()));
    expect([...second!]).toEqual([...first!]);
    for (const [index, value] of expected.entries()) expect(Math.abs(first![index]! - value)).toBeLessThan(1e-6);
  }
});

test("the wrapper is a module: its state has the wrapped one's under module., and a world of one trains as without it", async () => {
  const [replica] = await replicate(makeTabRanks(1), makeNet);
  expect([...replica!.stateDict().keys()]).toEqual([
    "module.0.weight",
    "module.0.bias",
    "module.2.weight",
    "module.2.bias",
  ]);
  const whole = copyOf(replica!, makeNet);
  lossOf(replica!, 0, 4).backward();
  await replica!.averageGradients();
  lossOf(whole, 0, 4).backward();
  expect(await gradients(replica!.module)).toEqual(await gradients(whole));
});

test("batches of 1 and 3: without counts the mean over ranks, with them the mean over samples", async () => {
  const replicas = await replicate(makeTabRanks(2), makeNet);
  const [byRank, bySample] = [copyOf(replicas[0]!, makeNet), copyOf(replicas[0]!, makeNet)];
  const step = async (samples?: readonly number[]) => {
    for (const replica of replicas) replica.zeroGrad();
    lossOf(replicas[0]!, 0, 1).backward();
    lossOf(replicas[1]!, 1, 4).backward();
    await Promise.all(
      replicas.map((replica, rank) => replica.averageGradients(samples && { samples: samples[rank] ?? 0 })),
    );
  };
  await step();
  lossOf(byRank, 0, 1).mul(0.5).backward();
  lossOf(byRank, 1, 4).mul(0.5).backward();
  await expectGradients(replicas, byRank);
  await step([1, 3]);
  lossOf(bySample, 0, 4).backward();
  await expectGradients(replicas, bySample);
});

test("a rank without samples gives nothing, and counts that only some ranks give fail all", async () => {
  const replicas = await replicate(makeTabRanks(2), makeNet);
  const whole = copyOf(replicas[0]!, makeNet);
  lossOf(replicas[0]!, 0, 4).backward();
  await Promise.all(replicas.map((replica, rank) => replica.averageGradients({ samples: rank === 0 ? 4 : 0 })));
  lossOf(whole, 0, 4).backward();
  await expectGradients(replicas, whole);
  for (const replica of replicas) lossOf(replica, 0, 1).backward();
  const failures = await Promise.allSettled(
    replicas.map((replica, rank) => replica.averageGradients(rank === 0 ? { samples: 1 } : {})),
  );
  for (const failure of failures)
    expect(failure).toMatchObject({
      reason: { message: expect.stringContaining("1 of 2 ranks said how many samples") },
    });
});

test.each([
  ["around backward only", (replica: DistributedDataParallel, loss: Tensor) => replica.noSync(() => loss.backward())],
  [
    "around the averaging too",
    (replica: DistributedDataParallel, loss: Tensor) =>
      replica.noSync(async () => {
        loss.backward();
        await replica.averageGradients();
      }),
  ],
])("noSync %s: four parts of a batch add up to the whole", async (_, accumulate) => {
  const replicas = await replicate(makeTabRanks(2), makeNet);
  const whole = copyOf(replicas[0]!, makeNet);
  for (let part = 0; part < 2; part += 1)
    await Promise.all(
      replicas.map(async (replica, rank) => {
        const row = 2 * rank + part;
        const loss = lossOf(replica, row, row + 1).mul(0.5);
        if (part === 0) await accumulate(replica, loss);
        else {
          loss.backward();
          await replica.averageGradients();
        }
      }),
    );
  lossOf(whole, 0, 4).backward();
  await expectGradients(replicas, whole);
});

/** Two heads, of which a step uses one or both. */
class TwoHeads extends Module {
  readonly left = new Linear(2, 1);
  readonly right = new Linear(2, 1);
  readonly never = new Linear(2, 1);
  uses = { left: true, right: true };

  forward(input: Tensor): Tensor {
    const { left, right } = this;
    if (!this.uses.right) return left.forward(input);
    return this.uses.left ? left.forward(input).add(right.forward(input)) : right.forward(input);
  }
}

test("findUnusedParameters: zeros from ranks that don't use a parameter, and no gradient where none does", async () => {
  const replicas = await replicate(makeTabRanks(2), () => new TwoHeads(), { findUnusedParameters: true });
  const whole = copyOf(replicas[0]!, () => new TwoHeads());
  replicas[0]!.module.uses = { left: true, right: false };
  replicas[1]!.module.uses = { left: true, right: true };
  for (let step = 0; step < 2; step += 1) {
    for (const [rank, replica] of replicas.entries()) {
      replica.zeroGrad();
      lossOf(replica, 2 * rank, 2 * rank + 2).backward();
    }
    await Promise.all(replicas.map((replica) => replica.averageGradients()));
    for (const { module } of replicas) {
      expect(module.never.weight.grad).toBeNull();
      expect(module.right.weight.grad).not.toBeNull();
    }
    whole.zeroGrad();
    whole.uses = { left: true, right: false };
    lossOf(whole, 0, 2).mul(0.5).backward();
    whole.uses = { left: true, right: true };
    lossOf(whole, 2, 4).mul(0.5).backward();
    await expectGradients(replicas, whole);
  }
});

test("without findUnusedParameters a parameter that no backward pass reaches fails all ranks, by name", async () => {
  const replicas = await replicate(makeTabRanks(2), () => new TwoHeads());
  for (const [rank, replica] of replicas.entries()) {
    replica.module.uses = { left: true, right: rank === 1 };
    lossOf(replica, 0, 2).backward();
  }
  const failures = await Promise.allSettled(replicas.map((replica) => replica.averageGradients()));
  for (const failure of failures)
    expect(failure).toMatchObject({
      reason: {
        message: expect.stringContaining(
          "no backward pass has reached right.weight (on 1 of 2 ranks), right.bias (on 1 of 2 ranks), never.weight (on 2 of 2 ranks), never.bias (on 2 of 2 ranks)",
        ),
      },
    });
});

test.each<[string, (rank: number) => Module, string]>([
  [
    "another number of parameters",
    (rank) => (rank === 1 ? new Sequential(new Linear(2, 3), new Linear(3, 1)) : new Linear(2, 3)),
    "Rank 0 has 2 parameters and rank 1 has 4.",
  ],
  [
    "another shape",
    (rank) => new Linear(2, rank === 2 ? 4 : 3),
    "Rank 0's parameter 0 is weight, float32[3, 2], and rank 2's is weight, float32[4, 2].",
  ],
  [
    "another order",
    (rank) =>
      rank === 1
        ? new Sequential(new Linear(3, 1), new Linear(2, 3))
        : new Sequential(new Linear(2, 3), new Linear(3, 1)),
    "Rank 0's parameter 0 is 0.weight, float32[3, 2], and rank 1's is 0.weight, float32[1, 3].",
  ],
  [
    "a frozen parameter",
    (rank) => (rank === 2 ? new Linear(2, 3).requiresGrad_(false) : new Linear(2, 3)),
    "Rank 0's parameter 0 is weight, float32[3, 2], and rank 2's is weight, float32[3, 2], frozen.",
  ],
])("a model with %s on one rank fails all ranks, naming both sides", async (_, make, sentence) => {
  const outcomes = await Promise.allSettled(
    makeTabRanks(3).map((processGroup) => DistributedDataParallel.create(make(processGroup.rank), { processGroup })),
  );
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining(sentence) } });
});

test("buffers are rank 0's on all ranks, unless broadcastBuffers is false", async () => {
  const make = () => new Sequential(new BatchNorm1d(2), new Linear(2, 1));
  for (const broadcastBuffers of [true, false]) {
    const replicas = await replicate(makeTabRanks(2), make, { broadcastBuffers });
    for (const [rank, replica] of replicas.entries()) lossOf(replica, 2 * rank, 2 * rank + 2).backward();
    await Promise.all(replicas.map((replica) => replica.averageGradients()));
    const [first, second] = await Promise.all(
      replicas.map(async ({ module }) => [...(await module.stateDict().get("0.running_mean")!.data())]),
    );
    // A tenth of the means of the first two rows.
    expect(first![0]).toBeCloseTo(0.125, 6);
    expect(second![0]).toBeCloseTo(broadcastBuffers ? 0.125 : -0.0375, 6);
  }
});

test("a rank with fewer batches finishes under join, and all end with one model", async () => {
  const replicas = await replicate(makeTabRanks(3), makeNet, manyBuckets);
  const whole = copyOf(replicas[0]!, makeNet);
  const batches = [1, 3, 2];
  await Promise.all(
    replicas.map((replica, rank) => {
      const optimizer = new SGD(replica.parameters(), { learningRate: 0.1 });
      return replica.join(async () => {
        for (let batch = 0; batch < batches[rank]!; batch += 1) {
          optimizer.zeroGrad();
          lossOf(replica, rank, rank + 2).backward();
          await replica.averageGradients();
          optimizer.step();
        }
      });
    }),
  );
  // Every step divides by three, whoever is left.
  const optimizer = new SGD(whole.parameters(), { learningRate: 0.1 });
  for (let batch = 0; batch < 3; batch += 1) {
    optimizer.zeroGrad();
    for (const [rank, count] of batches.entries())
      if (batch < count)
        lossOf(whole, rank, rank + 2)
          .div(3)
          .backward();
    optimizer.step();
  }
  for (const [name, parameter] of whole.stateDict()) {
    const expected = await parameter.data();
    for (const { module } of replicas)
      for (const [index, value] of (await module.stateDict().get(name)!.data()).entries())
        expect(Math.abs(value - expected[index]!), name).toBeLessThan(1e-6);
  }
});

test("buffers are those of the first rank with inputs, under join", async () => {
  const make = () => new Sequential(new BatchNorm1d(2), new Linear(2, 1));
  const replicas = await replicate(makeTabRanks(3), make);
  await Promise.all(
    replicas.map((replica, rank) =>
      replica.join(async () => {
        for (let batch = 0; batch < (rank === 0 ? 0 : 2); batch += 1) {
          lossOf(replica, rank, rank + 2).backward();
          await replica.averageGradients();
        }
      }),
    ),
  );
  // Two steps, each a tenth of the way to the mean of rank 1's rows, which is 0.25 and 0.625.
  for (const { module } of replicas) {
    const mean = await module.stateDict().get("0.running_mean")!.data();
    expect(mean[0]).toBeCloseTo(0.19 * 0.25, 6);
    expect(mean[1]).toBeCloseTo(0.19 * 0.625, 6);
  }
});

test("a bucket is read as soon as its gradients are computed, while the rest of backward is still to come", async () => {
  const [replica] = await replicate(makeTabRanks(1), makeNet, manyBuckets);
  replica!.registerCommHook(async () => {});
  const readAt: number[] = [];
  const { readback, stats } = device;
  const start = readback.start.bind(readback);
  readback.start = (slice, bytes) => {
    readAt.push(stats.dispatches);
    return start(slice, bytes);
  };
  try {
    lossOf(replica!, 0, 4).backward();
    await replica!.averageGradients();
  } finally {
    readback.start = start;
  }
  expect(readAt).toHaveLength(4);
  for (const [bucket, dispatches] of readAt.entries())
    if (bucket > 0) expect(dispatches).toBeGreaterThan(readAt[bucket - 1]!);
});

test("join with divideByInitialWorldSize false divides by the ranks that are left", async () => {
  const replicas = await replicate(makeTabRanks(2), makeNet);
  const whole = copyOf(replicas[0]!, makeNet);
  await Promise.all(
    replicas.map((replica, rank) =>
      replica.join(
        async () => {
          if (rank === 0) return;
          lossOf(replica, 0, 4).backward();
          await replica.averageGradients();
        },
        { divideByInitialWorldSize: false },
      ),
    ),
  );
  lossOf(whole, 0, 4).backward();
  await expectGradients([replicas[1]!], whole);
});

test("join with throwOnEarlyTermination fails all ranks when one ends early, and none when all end together", async () => {
  const run = async (batches: readonly number[]) => {
    const replicas = await replicate(makeTabRanks(2), makeNet);
    return Promise.allSettled(
      replicas.map((replica, rank) =>
        replica.join(
          async () => {
            for (let batch = 0; batch < batches[rank]!; batch += 1) {
              replica.zeroGrad();
              lossOf(replica, 0, 2).backward();
              await replica.averageGradients();
            }
          },
          { throwOnEarlyTermination: true },
        ),
      ),
    );
  };
  expect((await run([2, 2])).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  const [early, other] = await run([1, 2]);
  expect(early).toMatchObject({
    reason: { message: expect.stringContaining("Rank 0 ran out of inputs while 1 of 2") },
  });
  expect(other).toMatchObject({ reason: { message: expect.stringContaining("1 of 2 ranks ran out of inputs") } });
});

test("a communication hook takes the place of the all-reduce, once", async () => {
  const replicas = await replicate(makeTabRanks(2), makeNet, manyBuckets);
  const seen: string[][] = [[], []];
  for (const [rank, replica] of replicas.entries()) {
    replica.registerCommHook(async ({ entries, isLast, gradients }, group) => {
      seen[rank]!.push(...entries.map(({ name }) => name), ...(isLast ? ["last"] : []));
      await group.allReduce(gradients).wait();
      gradients.fill(7);
    });
    expect(() => replica.registerCommHook(async () => {})).toThrow("there is a communication hook already");
    lossOf(replica, 0, 4).backward();
  }
  await Promise.all(replicas.map((replica) => replica.averageGradients()));
  for (const names of seen) expect(names).toEqual(["2.bias", "2.weight", "0.bias", "0.weight", "last"]);
  expect(await replicas[1]!.module.parameters()[3]!.grad!.array()).toEqual([7]);
});

test("averageGradients takes parameters that aren't packed", async () => {
  const groups = makeTabRanks(2);
  const parameters = groups.map(({ rank }) => tensor([rank + 1, 2], { requiresGrad: true }));
  for (const parameter of parameters) parameter.mul(parameter).sum().backward();
  await Promise.all(groups.map((group) => averageGradients([parameters[group.rank]!], group)));
  for (const parameter of parameters) expect(await parameter.grad!.array()).toEqual([3, 4]);
});

test("models that begin with different weights get those of rank 0, frozen ones and buffers too", async () => {
  manualSeed(3);
  const replicas = await replicate(makeTabRanks(3), () => {
    const net = new Sequential(new Linear(2, 3), new BatchNorm1d(3), new Linear(3, 1));
    net.layers[0]!.requiresGrad_(false);
    return net;
  });
  const [first, ...others] = await Promise.all(
    replicas.map(async ({ module }) =>
      Promise.all([...module.stateDict()].map(async ([name, value]) => [name, [...(await value.data())]])),
    ),
  );
  expect(first).toHaveLength(9);
  for (const other of others) expect(other).toEqual(first);
});

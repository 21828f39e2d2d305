import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { Linear, Sequential, Tanh } from "../nn";
import { manualSeed, noGrad, setDefaultDevice, tensor } from "../tensor";
import type { CommHook } from "./commHooks";
import { bf16CompressHook, fp16CompressHook } from "./commHooksQuantized";
import { DistributedDataParallel } from "./distributedDataParallel";
import { makeTabRanks, onAll } from "./testing/tabRanks";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const replicate = (hook: CommHook, worldSize = 2) =>
  onAll(makeTabRanks(worldSize), async (processGroup) => {
    manualSeed(3);
    const net = new Sequential(new Linear(2, 40), new Tanh(), new Linear(40, 1));
    const replica = await DistributedDataParallel.create(net, { processGroup, bucketCapMb: 1e-6 });
    replica.registerCommHook(hook);
    return replica;
  });
type Replica = Awaited<ReturnType<typeof replicate>>[number];

const lossOf = (replica: Replica, rank: number, scale = 1) =>
  replica.forward(tensor([[0.3 + rank, scale * (1 - rank)]])).sum();
const gradientsOf = async (replica: Replica) => [...(await replica.flat.gradients.data())];

/** Bytes that each readback has, in turn, and how many kernels ran before it. */
async function watchReads(body: () => Promise<void>): Promise<{ bytes: number; dispatches: number }[]> {
  const seen: { bytes: number; dispatches: number }[] = [];
  const { readback, stats } = device;
  const start = readback.start.bind(readback);
  readback.start = (slice, bytes) => {
    seen.push({ bytes, dispatches: stats.dispatches });
    return start(slice, bytes);
  };
  try {
    await body();
  } finally {
    readback.start = start;
  }
  return seen;
}

test.each([
  ["float16", fp16CompressHook],
  ["bfloat16", bf16CompressHook],
] as const)(
  "%s: gradients rounded on the GPU give the bits of those rounded here, and half the bytes are read",
  async (_, hook) => {
    // A hook without a type gets float32.
    const here = await replicate((bucket, group) => hook(bucket, group));
    const there = await replicate(hook);
    for (const scale of [1, 7, 1e-3]) {
      const bytes: number[] = [];
      for (const replicas of [here, there]) {
        for (const [rank, replica] of replicas.entries()) {
          replica.zeroGrad();
          lossOf(replica, rank, scale).backward();
        }
        const reads = await watchReads(async () => {
          await Promise.all(replicas.map((replica) => replica.averageGradients()));
        });
        bytes.push(reads.reduce((sum, read) => sum + read.bytes, 0));
      }
      const [first, ...others] = await Promise.all([...here, ...there].map(gradientsOf));
      expect(first!.some((value) => value !== 0)).toBe(true);
      for (const other of others) expect(other).toEqual(first);
      expect(bytes[1]).toBe(bytes[0]! / 2);
    }
  },
);

test("a bucket is rounded and read while the rest of backward is still to come", async () => {
  const replicas = await replicate(fp16CompressHook);
  for (const [rank, replica] of replicas.entries()) lossOf(replica, rank).backward();
  const reads = await watchReads(async () => {
    await Promise.all(replicas.map((replica) => replica.averageGradients()));
  });
  // Both ranks share this page's recording: the first four reads are rank 0's.
  const dispatches = reads.slice(0, 4).map((read) => read.dispatches);
  for (const [index, count] of dispatches.entries())
    if (index > 0) expect(count).toBeGreaterThan(dispatches[index - 1]!);
});

test("gradients that are changed behind backward are rounded again", async () => {
  const replicas = await replicate(fp16CompressHook);
  for (const [rank, replica] of replicas.entries()) {
    lossOf(replica, rank).backward();
    noGrad(() => replica.flat.gradients.write(new Float32Array(replica.flat.gradients.numel).fill(rank + 1)));
  }
  await Promise.all(replicas.map((replica) => replica.averageGradients()));
  for (const replica of replicas) expect(new Set(await gradientsOf(replica))).toEqual(new Set([1.5]));
});

test("after warm-up a step makes no buffer, pipeline or bind group", async () => {
  const [replica] = await replicate(fp16CompressHook, 1);
  const input = tensor([[0.3, 1]]).keep();
  const step = async () => {
    replica!.zeroGrad();
    replica!.forward(input).sum().backward();
    await replica!.averageGradients();
  };
  for (let warmUp = 0; warmUp < 3; warmUp += 1) await step();
  const made = () => [device.stats.buffers, device.stats.pipelines, device.stats.bindGroups];
  const before = made();
  for (let more = 0; more < 3; more += 1) await step();
  expect(made()).toEqual(before);
});

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { BatchNorm1d, BatchNorm2d, Linear, ModuleDict, ModuleList, Sequential } from "../nn";
import { setDefaultDevice, tensor } from "../tensor";
import type { MemberId } from "../transport/link";
import { convertSyncBatchNorm, SyncBatchNorm } from "./syncBatchNorm";
import { idOf } from "./testing/ranks";
import { lossOf, makeNet, outcomeOf } from "./testing/syncBatchNormCase";
import type { SyncBatchNormStart } from "./testing/syncBatchNormWorker";
import { makeTabRanks } from "./testing/tabRanks";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

interface Answer {
  readonly error?: string;
  readonly outcome?: Readonly<Record<string, readonly number[]>>;
  readonly names?: readonly string[];
}

/** Runs a step on as many workers as there are shares, each a rank with a device of its own. */
async function runRanks(shares: readonly (readonly [number, number])[]): Promise<Answer[]> {
  const members = shares.map((_, rank) => idOf(rank));
  const ports = members.map(() => new Map<MemberId, MessagePort>());
  for (let a = 0; a < members.length; a += 1)
    for (let b = a + 1; b < members.length; b += 1) {
      const { port1, port2 } = new MessageChannel();
      ports[a]!.set(members[b]!, port1);
      ports[b]!.set(members[a]!, port2);
    }
  const workers = shares.map(
    () => new Worker(new URL("./testing/syncBatchNormWorker.ts", import.meta.url), { type: "module" }),
  );
  try {
    return await Promise.all(
      workers.map(
        (worker, rank) =>
          new Promise<Answer>((resolve, reject) => {
            worker.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data);
            worker.onerror = ({ message }) => reject(new Error(message));
            const [from, to] = shares[rank]!;
            const start: SyncBatchNormStart = { members, rank, ports: ports[rank]!, from, to };
            worker.postMessage(start, [...ports[rank]!.values()]);
          }),
      ),
    );
  } finally {
    for (const worker of workers) worker.terminate();
  }
}

test.each<[string, readonly (readonly [number, number])[]]>([
  [
    "two ranks with 2 and 3 images",
    [
      [0, 2],
      [2, 5],
    ],
  ],
  [
    "three ranks with 1, 4 and no images",
    [
      [0, 1],
      [1, 5],
      [5, 5],
    ],
  ],
])("%s compute one process's gradients and running moments", async (_, shares) => {
  const whole = makeNet();
  lossOf(whole, 0, 5).backward();
  const expected = await outcomeOf(whole);
  for (const { error, outcome, names } of await runRanks(shares)) {
    expect(error).toBeUndefined();
    expect(names).toEqual([...whole.stateDict().keys()]);
    expect(Object.keys(outcome!)).toEqual(Object.keys(expected));
    for (const [name, values] of Object.entries(expected))
      for (const [i, value] of values.entries())
        expect(Math.abs(outcome![name]![i]! - value), `${name}[${i}]: ${outcome![name]![i]} for ${value}`).toBeLessThan(
          2e-5,
        );
  }
});

test("conversion keeps parameters and buffers, wherever the layer lies", () => {
  const [processGroup] = makeTabRanks(1);
  const list = new ModuleList([new BatchNorm1d(2), new Linear(2, 2)]);
  const dict = new ModuleDict({ norm: new BatchNorm2d(1) });
  const model = new Sequential(new BatchNorm2d(3, { affine: false }), list, dict);
  model.eval();
  const before = [...model.stateDict()];
  expect(convertSyncBatchNorm(model, processGroup)).toBe(model);
  expect([...model.stateDict()]).toEqual(before);
  expect(
    model
      .modules()
      .filter((module) => module instanceof SyncBatchNorm)
      .map(({ training }) => training),
  ).toEqual([false, false, false]);
  expect(convertSyncBatchNorm(new BatchNorm1d(4), processGroup)).toBeInstanceOf(SyncBatchNorm);
});

test("alone, and in evaluation, it is batch norm", async () => {
  const [processGroup] = makeTabRanks(1);
  const [own, plain] = [new SyncBatchNorm(2, {}, processGroup), new BatchNorm1d(2)];
  const input = tensor([
    [1, 5],
    [2, -3],
    [4, 0.5],
  ]);
  for (const isTraining of [true, false]) {
    own.train(isTraining);
    plain.train(isTraining);
    const expected = await plain.forward(input).data();
    for (const [i, value] of (await own.forward(input).data()).entries())
      expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-5);
  }
  expect(() => own.forward(tensor([1, 2]))).toThrow("the input has the shape [2]; expected [N, 2, ...]");
});

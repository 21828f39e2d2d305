import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import {
  explain,
  matmul,
  rand,
  setDefaultDevice,
  sum,
  type TuningChoices,
  type TuningStore,
  transpose,
  tune,
} from "./index";
import { matmulVariants } from "./operators/matmulVariants";
import { forceVariant } from "./runtime";
import { defaultTuningStore } from "./tuningStore";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const random = (shape: number[], stream: number) => rand(shape, { seed: 9, stream: [stream, 0] }).sub(0.5);

/** Products of each layout, by vectors: a few results more and less than tiles, one of a batch, one cut along K. */
const products = {
  NN: () => matmul(random([2, 37, 24], 0), random([2, 24, 44], 1)),
  NT: () => matmul(random([35, 28], 2), transpose(random([41, 28], 3), 0, 1)),
  TN: () => matmul(transpose(random([2050, 16], 6), 0, 1), random([2050, 20], 7)),
};

test("every variant of the matrix product gives the same bits", async () => {
  const results = async () => Promise.all(Object.values(products).map((product) => product().data()));
  const usual = await results();
  const compiled: string[] = [];
  for (const { name } of matmulVariants) {
    await forceVariant(name);
    const { pipelines } = device.stats.snapshot();
    expect([name, await results()]).toEqual([name, usual]);
    if (device.stats.snapshot().pipelines > pipelines) compiled.push(name);
  }
  await forceVariant(null);
  // Each was really taken; one of them may be the usual one of all three products.
  expect(compiled.length).toBeGreaterThanOrEqual(matmulVariants.length - 1);
  expect(usual.every((values) => values.some((value) => value > 0))).toBe(true);
});

test("tune() measures what ran, keeps its choices, and takes them again without measuring", async () => {
  const saved = new Map<string, TuningChoices>();
  const store: TuningStore = {
    load: async (adapter) => saved.get(adapter) ?? null,
    save: async (adapter, choices) => void saved.set(adapter, choices),
  };
  const before = await products.NN().data();
  const tuned = await tune({ milliseconds: 1, rounds: 1, store });
  const [{ site, milliseconds }] = tuned as [(typeof tuned)[number]];
  expect(tuned.map((one) => one.site)).toEqual([
    "matmul NN 64x64x32 in 2",
    "matmul NT 64x64x32 in 1",
    "matmul TN 16x32x4096 in 1",
  ]);
  expect(Object.keys(milliseconds)).toEqual(matmulVariants.map(({ name }) => name));
  expect([...saved.values()]).toEqual([Object.fromEntries(tuned.map((one) => [one.site, one.variant]))]);
  expect(await products.NN().data()).toEqual(before);
  expect(await tune({ store })).toEqual([]);

  // Another device of the adapter, where another choice was kept than the usual one.
  const [adapter] = saved.keys();
  saved.set(adapter!, { [site]: "4x4 by 16x16, shared" });
  const next = await requestDevice();
  setDefaultDevice(next);
  expect(await tune({ store })).toEqual([]);
  expect(await products.NN().data()).toEqual(before);
  expect(await explain()).toContain("matmul NN 64x64 shared");
  next.destroy();
  setDefaultDevice(device);
});

test("nothing is measured unless asked for", async () => {
  const { dispatches } = device.stats.snapshot();
  await sum(products.NN()).item();
  expect(device.stats.snapshot().dispatches - dispatches).toBeLessThan(8);
});

test("choices are kept in IndexedDB, and what else lies there is not taken for one", async () => {
  const store = defaultTuningStore();
  expect(await store.load("no such adapter")).toBe(null);
  await store.save("an adapter", { "matmul NN": "4x4" });
  await store.save("another", {});
  expect(await defaultTuningStore().load("an adapter")).toEqual({ "matmul NN": "4x4" });
  await new Promise<void>((resolve, reject) => {
    const opening = indexedDB.open("ringlet");
    opening.onerror = reject;
    opening.onsuccess = () => {
      const transaction = opening.result.transaction("tuning", "readwrite");
      transaction.objectStore("tuning").put({ "matmul NN": 7 }, "an adapter");
      transaction.oncomplete = () => {
        opening.result.close();
        resolve();
      };
    };
  });
  expect(await store.load("an adapter")).toBe(null);
});

import { expect, test } from "vitest";
import { simulateScaling } from "./scaling";

const lan = { bytesPerSecond: 10e6, latencyMilliseconds: 2, modelBytes: 4_000_000 };

test("while segments take longer than a hop the latency hides behind them, and the step is nearly the bound", async () => {
  for (const peers of [2, 4, 8, 16]) {
    const { stepMilliseconds, boundMilliseconds, efficiency } = await simulateScaling({ ...lan, peers });
    expect(stepMilliseconds).toBeGreaterThan(boundMilliseconds);
    expect(efficiency).toBeGreaterThan(0.95);
  }
});

test("a member sends 2 (N - 1) / N of the model, whatever the number of members", async () => {
  for (const peers of [2, 3, 16, 64]) {
    const { payloadBytes, boundBytes, totalBytes } = await simulateScaling({ ...lan, peers });
    expect(Math.abs(payloadBytes - boundBytes)).toBeLessThanOrEqual(8 * peers);
    expect(totalBytes / boundBytes).toBeLessThan(1.01);
  }
});

test("when a segment is shorter than a hop every hop pays its latency, and no more", async () => {
  const { stepMilliseconds, hopsMilliseconds, efficiency } = await simulateScaling({
    peers: 128,
    bytesPerSecond: 10e6,
    latencyMilliseconds: 10,
    modelBytes: 1_000_000,
  });
  expect(stepMilliseconds / hopsMilliseconds).toBeLessThan(1.001);
  expect(stepMilliseconds / hopsMilliseconds).toBeGreaterThan(0.999);
  expect(efficiency).toBeLessThan(0.1);
});

test("without chunks shorter than a segment a hop waits for the whole of it", async () => {
  const options = { ...lan, latencyMilliseconds: 20, peers: 4 };
  const chunked = await simulateScaling(options);
  const whole = await simulateScaling({ ...options, chunkBytes: 1_000_000 });
  // Six hops of a megabyte, with the latency in between, against the latency of the first chunk.
  expect(whole.stepMilliseconds).toBeGreaterThan(6 * 120);
  expect(chunked.stepMilliseconds).toBeLessThan(640);
});

test("frames per member grow with the hops only where segments are shorter than a chunk", async () => {
  const frames = async (peers: number) => (await simulateScaling({ ...lan, peers })).frames;
  expect(await frames(4)).toBe(6 * Math.ceil(1_000_000 / 64512));
  expect(await frames(128)).toBe(254);
});

test("a lone member has nothing to send", async () => {
  expect(await simulateScaling({ ...lan, peers: 1 })).toMatchObject({
    stepMilliseconds: 0,
    efficiency: 1,
    totalBytes: 0,
  });
});

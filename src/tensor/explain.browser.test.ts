import { afterAll, expect, test } from "vitest";
import { Device, GpuError, requestDevice } from "../gpu";
import { compile, explain, gelu, linear, matmul, rand, setDefaultDevice, sum, tensor } from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const x = rand([24, 32], { seed: 1, stream: [0, 0] });
const w = tensor(new Float32Array(640).fill(0.5), { shape: [20, 32] });

test("explains the last flush: a line a kernel, with its tensors and the bytes that it moves", async () => {
  await sum(gelu(linear(x, w))).item();
  const lines = (await explain()).split("\n");
  expect(lines[0]).toMatch(
    /^\d kernels, about .* operations and .* moved; .* of scratch memory in \d+ buffers, in which results hold at most .* at once\.$/,
  );
  expect(lines[1]!.trim().split(/ {2,}/)).toEqual([
    "kernel",
    "results",
    "reads",
    "moves",
    "holds",
    "computes",
    "workgroups",
  ]);
  expect(lines.length).toBe(2 + Number.parseInt(lines[0]!, 10));
  expect(lines.some((line) => line.includes("float32[24, 20]"))).toBe(true);
});

test("times each kernel of what is recorded, or of a step, and nothing after that", async () => {
  expect(device.gpu.features.has("timestamp-query")).toBe(true);
  const step = compile(() => sum(gelu(matmul(x, w.t()))));
  step();
  const { passes, restore } = countPasses();
  const lines = (await explain({ times: true, step })).split("\n");
  const kernels = Number.parseInt(lines[0]!, 10);
  expect(passes()).toBe(kernels);
  expect(lines[0]).toMatch(/ moved; \d+\.\d{3} ms on the GPU, each kernel in a pass of its own\.$/);
  expect(lines[1]).toMatch(/workgroups +time +share$/);
  for (const line of lines.slice(2, 2 + kernels)) expect(line).toMatch(/\d\.\d{3} ms +(\d+\.\d%|-)$/);
  expect(lines[2 + kernels]).toMatch(/^Most time: .+ in 1/);
  step();
  expect(passes()).toBe(kernels + 1);
  restore();
  sum(x);
  expect(await explain({ times: true })).toMatch(/sum/);
  expect(await explain({ times: true })).toBe("Nothing was computed.");
});

test("without timestamps, times are a sentence", async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const plain = new Device(await adapter!.requestDevice(), adapter!.info);
  setDefaultDevice(plain);
  sum(x);
  await expect(explain({ times: true })).rejects.toThrow(GpuError);
  await expect(explain({ times: true })).rejects.toThrow("it has no timestamps (WebGPU's feature timestamp-query)");
  plain.destroy();
  setDefaultDevice(device);
});

/** Counts compute passes that begin. */
function countPasses() {
  let count = 0;
  const { beginComputePass } = GPUCommandEncoder.prototype;
  GPUCommandEncoder.prototype.beginComputePass = function (descriptor) {
    count += 1;
    return beginComputePass.call(this, descriptor);
  };
  return {
    passes: () => count,
    restore: () => {
      GPUCommandEncoder.prototype.beginComputePass = beginComputePass;
    },
  };
}

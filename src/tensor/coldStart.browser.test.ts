import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { argmax, exp, matmul, rand, setDefaultDevice, softmax } from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

test("all kernels of a step begin to compile before the first is ready, and nothing is submitted until then", async () => {
  const { gpu, stats } = device;
  const compile = gpu.createComputePipelineAsync.bind(gpu);
  const events: string[] = [];
  gpu.createComputePipelineAsync = async (descriptor) => {
    events.push("begin");
    const pipeline = await compile(descriptor);
    events.push(`ready after ${stats.submits} submits`);
    return pipeline;
  };
  const x = rand([16, 16], { seed: 1, stream: [0, 0] });
  await argmax(softmax(exp(matmul(x, x)), 1), 1).data();
  const { pipelines, submits } = stats.snapshot();
  expect(pipelines).toBeGreaterThan(2);
  expect(events).toEqual([
    ...Array.from({ length: pipelines }, () => "begin"),
    ...Array.from({ length: pipelines }, () => "ready after 0 submits"),
  ]);
  expect(submits).toBeGreaterThan(0);
});

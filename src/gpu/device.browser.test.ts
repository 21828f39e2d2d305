import { afterAll, expect, test } from "vitest";
import { type Device, DeviceLostError, GpuError, requestDevice, type Shader, spread } from "./index";

const doubling: Shader = {
  name: "double",
  bindings: ["read", "write"],
  code: /* wgsl */ `
struct Uniforms { count: u32, factor: f32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let i = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (i < u.count) { out[i] = a[i] * u.factor; }
}`,
};

const words = (count: number, factor: number) =>
  new Uint32Array([count, new Uint32Array(new Float32Array([factor]).buffer)[0]!]);

async function multiply(device: Device, values: readonly number[], factor: number): Promise<number[]> {
  const input = device.buffers.acquire(values.length * 4, "input");
  const output = device.buffers.acquire(values.length * 4, "output");
  device.gpu.queue.writeBuffer(input.gpu, 0, new Float32Array(values));
  const kernel = device.pipelines.kernel(doubling);
  await kernel.ready;
  const slices = [input.slice(0, input.size), output.slice(0, output.size)];
  const bindGroup = device.pipelines.bindGroup(kernel, slices);
  const grid = spread(Math.ceil(values.length / 64));
  device.recorder.dispatch(kernel, bindGroup, words(values.length, factor), grid, values.length);
  const read = device.readback.start(slices[1]!, values.length * 4);
  device.recorder.submit();
  const result = await read.finish((bytes) => [...new Float32Array(bytes, 0, values.length)]);
  device.buffers.release(input);
  device.buffers.release(output);
  return result;
}

const shared = await requestDevice();
afterAll(() => shared.destroy());

test("a kernel reads its uniform block and its buffers", async () => {
  expect(await multiply(shared, [1, 2, 3], 2)).toEqual([2, 4, 6]);
});

test("the same work again creates no buffer, pipeline or bind group", async () => {
  await multiply(shared, [1, 2, 3], 2);
  const before = shared.stats.snapshot();
  expect(await multiply(shared, [4, 5, 6], 3)).toEqual([12, 15, 18]);
  const after = shared.stats.snapshot();
  expect(after).toEqual({ ...before, dispatches: before.dispatches + 1, submits: before.submits + 1 });
});

test("dispatches are batched into one submit, and cut where they would take long", () => {
  const kernel = shared.pipelines.kernel(doubling);
  const buffers = [shared.buffers.acquire(256, "input"), shared.buffers.acquire(256, "output")];
  const bindGroup = shared.pipelines.bindGroup(
    kernel,
    buffers.map((buffer) => buffer.slice(0, 256)),
  );
  const submitsFor = (work: number) => {
    const before = shared.stats.submits;
    for (let i = 0; i < 10; i++) shared.recorder.dispatch(kernel, bindGroup, words(1, 1), [1, 1, 1], work);
    shared.recorder.submit();
    return shared.stats.submits - before;
  };
  expect(submitsFor(1)).toBe(1);
  expect(submitsFor(1e15)).toBe(10);
});

test("the recorder says when the GPU is far behind, and when it has caught up", async () => {
  const buffer = shared.buffers.acquire(256, "cleared");
  expect(shared.recorder.room()).toBeNull();
  for (let i = 0; i < 40; i++) {
    shared.recorder.clear(buffer.slice(0, 256));
    shared.recorder.submit();
  }
  const room = shared.recorder.room();
  expect(room).not.toBeNull();
  await room;
  await shared.gpu.queue.onSubmittedWorkDone();
  expect(shared.recorder.room()).toBeNull();
  shared.buffers.release(buffer);
});

test("several reads may be under way at once", async () => {
  const results = await Promise.all([multiply(shared, [1], 10), multiply(shared, [2], 10), multiply(shared, [3], 10)]);
  expect(results).toEqual([[10], [20], [30]]);
});

test("a buffer over the device's limit is refused with its size and the limit", () => {
  const limit = shared.gpu.limits.maxStorageBufferBindingSize;
  expect(() => shared.buffers.acquire(limit * 2, "a tensor of shape [2, 3]")).toThrow(
    new RegExp(`a tensor of shape \\[2, 3\\] needs ${limit * 2} bytes in one GPU buffer, .* at most \\d+`),
  );
});

test("a kernel that does not compile rejects with its name", async () => {
  const broken = shared.pipelines.kernel({ ...doubling, name: "broken", code: "fn main() { nonsense }" });
  await expect(broken.ready).rejects.toThrow(GpuError);
  await expect(broken.ready).rejects.toThrow(/The kernel broken did not compile on this GPU/);
});

test("a device that is destroyed rejects the read under way, and another can be made", async () => {
  const first = await requestDevice();
  const buffer = first.buffers.acquire(256, "data");
  const read = first.readback.start(buffer.slice(0, 256), 256);
  first.recorder.submit();
  const finished = read.finish(() => 1);
  first.destroy();
  await expect(finished).rejects.toThrow(DeviceLostError);
  expect(await first.lost).toBe("The GPU device was destroyed.");
  expect(() => first.check()).toThrow("The GPU device was destroyed.");
  const second = await requestDevice();
  expect(await multiply(second, [7], 2)).toEqual([14]);
  second.destroy();
});

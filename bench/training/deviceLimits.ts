/**
 * What the adapter can do at most, as far as WGSL can ask it to: no step can be faster than its work at these rates. Each is
 * the fastest of several measurements, since whatever else the machine does can only make it look slower.
 */
export interface DeviceLimits {
  /** Multiplications with an addition, float32, everything in registers. */
  readonly multiplyAddsPerSecond: number;
  /** The same in float16; null where the adapter has none. */
  readonly halfMultiplyAddsPerSecond: number | null;
  /** Storage buffers of 32 MiB read once and written once, both counted. */
  readonly bytesPerSecond: number;
}

const workgroup = 64;
const workgroups = 256;
/** Independent chains in an invocation, so that a multiply-add needn't wait for the one before. */
const chains = 8;
const bufferBytes = 32 * 2 ** 20;
const repetitions = 9;
/** A measurement lasts this long at least, so that the submit's own time doesn't show. */
const enoughMilliseconds = 80;

const halfFeature = "shader-f16";

const arithmeticShader = (type: "f32" | "f16") => `
${type === "f16" ? "enable f16;" : ""}
@group(0) @binding(0) var<storage, read_write> result: array<vec4f>;
@group(0) @binding(1) var<uniform> steps: vec4u;
@compute @workgroup_size(${workgroup})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let a = vec4<${type}>(0.999);
  let b = vec4<${type}>(${type}(f32(id.x) * 1e-6));
  ${Array.from({ length: chains }, (_, i) => `var x${i} = vec4<${type}>(${i}.5);`).join("\n  ")}
  for (var step = 0u; step < steps.x; step++) {
    ${Array.from({ length: chains }, (_, i) => `x${i} = fma(x${i}, a, b);`).join("\n    ")}
  }
  result[id.x] = vec4f(${Array.from({ length: chains }, (_, i) => `x${i}`).join(" + ")});
}`;

const copyShader = `
@group(0) @binding(0) var<storage, read_write> target_: array<vec4f>;
@group(0) @binding(1) var<storage, read> source: array<vec4f>;
@compute @workgroup_size(${workgroup})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * ${workgroup} + id.x;
  target_[index] = source[index] * 1.5;
}`;

export async function measureDeviceLimits(): Promise<DeviceLimits> {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("This browser offers no WebGPU adapter.");
  const hasHalf = adapter.features.has(halfFeature);
  const device = await adapter.requestDevice({ requiredFeatures: hasHalf ? [halfFeature] : [] });
  const limits = {
    multiplyAddsPerSecond: await arithmeticRate(device, "f32"),
    halfMultiplyAddsPerSecond: hasHalf ? await arithmeticRate(device, "f16") : null,
    bytesPerSecond: await copyRate(device),
  };
  device.destroy();
  return limits;
}

async function arithmeticRate(device: GPUDevice, type: "f32" | "f16"): Promise<number> {
  const invocations = workgroup * workgroups;
  const result = device.createBuffer({ size: invocations * 16, usage: GPUBufferUsage.STORAGE });
  const steps = device.createBuffer({ size: 16, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
  const run = await prepare(device, arithmeticShader(type), [result, steps], [workgroups, 1]);
  return rate(
    (amount) => {
      device.queue.writeBuffer(steps, 0, Uint32Array.of(amount, 0, 0, 0));
      return run(1);
    },
    invocations * chains * 4,
  );
}

async function copyRate(device: GPUDevice): Promise<number> {
  const buffers = [0, 1].map(() => device.createBuffer({ size: bufferBytes, usage: GPUBufferUsage.STORAGE }));
  const groups = bufferBytes / 16 / workgroup;
  const run = await prepare(device, copyShader, buffers, [256, groups / 256]);
  return rate(run, 2 * bufferBytes);
}

/** Doubles the amount of work until it lasts, then measures it. @param unit what one of the amount is. */
async function rate(run: (amount: number) => Promise<void>, unit: number): Promise<number> {
  const timed = async (amount: number) => {
    const start = performance.now();
    await run(amount);
    return performance.now() - start;
  };
  let amount = 1;
  await timed(amount);
  while ((await timed(amount)) < enoughMilliseconds) amount *= 2;
  let fastest = Number.POSITIVE_INFINITY;
  for (let repetition = 0; repetition < repetitions; repetition += 1) fastest = Math.min(fastest, await timed(amount));
  return (amount * unit * 1000) / fastest;
}

/** A function that runs the shader so many times in one submit and waits for its end. */
async function prepare(
  device: GPUDevice,
  code: string,
  buffers: readonly GPUBuffer[],
  [x, y]: readonly [number, number],
): Promise<(dispatches: number) => Promise<void>> {
  const module = device.createShaderModule({ code });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const bindings = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  return async (dispatches) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindings);
    for (let dispatch = 0; dispatch < dispatches; dispatch += 1) pass.dispatchWorkgroups(x, y);
    pass.end();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
  };
}

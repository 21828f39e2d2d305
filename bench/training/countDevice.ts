/** What is counted: objects created (with the buffers' bytes), dispatches, submits, and uploads through the queue. */
const countNames = [
  "buffers",
  "bytes",
  "shaderModules",
  "pipelines",
  "bindGroups",
  "dispatches",
  "submits",
  "writes",
] as const;
type CountName = (typeof countNames)[number];

/** What was created and submitted through WebGPU in this page. */
export type DeviceCounts = Record<CountName, number>;

const counts: DeviceCounts = {
  buffers: 0,
  bytes: 0,
  shaderModules: 0,
  pipelines: 0,
  bindGroups: 0,
  dispatches: 0,
  submits: 0,
  writes: 0,
};
let liveBytes = 0;
/** Bytes of the buffers that aren't destroyed, so that one that is destroyed twice counts once. */
const alive = new WeakMap<GPUBuffer, number>();

type Method<T> = { [K in keyof T]: T[K] extends (...parameters: never[]) => unknown ? K : never }[keyof T];

/** Runs `after` with each call's result and arguments. */
function observe<T extends object, K extends Method<T>>(
  prototype: T,
  name: K,
  after: (receiver: T, result: unknown, parameters: unknown[]) => void,
): void {
  const original: unknown = prototype[name];
  if (typeof original !== "function") throw new TypeError(`WebGPU has no method ${String(name)} here.`);
  Object.defineProperty(prototype, name, {
    configurable: true,
    writable: true,
    value(this: T, ...parameters: unknown[]): unknown {
      const result: unknown = Reflect.apply(original, this, parameters);
      after(this, result, parameters);
      return result;
    },
  });
}

/** Wraps WebGPU's own prototypes, so that every library in this page is counted alike. Call before any asks for a device. */
export function countDevices(): void {
  const device = GPUDevice.prototype;
  observe(device, "createBuffer", (_, buffer) => {
    if (!(buffer instanceof GPUBuffer)) return;
    counts.buffers += 1;
    counts.bytes += buffer.size;
    liveBytes += buffer.size;
    alive.set(buffer, buffer.size);
  });
  observe(GPUBuffer.prototype, "destroy", (buffer) => {
    liveBytes -= alive.get(buffer) ?? 0;
    alive.delete(buffer);
  });
  const count = (key: CountName) => () => {
    counts[key] += 1;
  };
  observe(device, "createShaderModule", count("shaderModules"));
  observe(device, "createComputePipeline", count("pipelines"));
  observe(device, "createComputePipelineAsync", count("pipelines"));
  observe(device, "createBindGroup", count("bindGroups"));
  observe(GPUComputePassEncoder.prototype, "dispatchWorkgroups", count("dispatches"));
  observe(GPUComputePassEncoder.prototype, "dispatchWorkgroupsIndirect", count("dispatches"));
  observe(GPUQueue.prototype, "submit", count("submits"));
  observe(GPUQueue.prototype, "writeBuffer", count("writes"));
}

export const deviceCounts = (): DeviceCounts => ({ ...counts });
/** Bytes of the buffers that were created and not destroyed. */
export const liveDeviceBytes = (): number => liveBytes;

/** Each count made from the two of the same name. */
export function combineCounts(a: DeviceCounts, b: DeviceCounts, f: (x: number, y: number) => number): DeviceCounts {
  const result = { ...a };
  for (const name of countNames) result[name] = f(a[name], b[name]);
  return result;
}

export const countsBetween = (before: DeviceCounts, after: DeviceCounts): DeviceCounts =>
  combineCounts(before, after, (x, y) => y - x);

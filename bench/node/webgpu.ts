import { create, globals } from "webgpu";

/**
 * Puts Dawn's WebGPU where a page has it. Whether there is a driver shows when an adapter is asked for.
 * `navigator` is new in Node 21; there it has no `gpu`.
 */
export function installWebGpu(): void {
  Object.assign(globalThis, globals);
  const gpu = create([]);
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { gpu, userAgent: "Node" } });
}

import { create, globals } from "webgpu";

/**
 * Puts Dawn's WebGPU where a page has it. (Node's own `navigator`, new in 21, has no `gpu`.)
 * @throws a sentence where Dawn finds no driver.
 */
export async function installWebGpu(): Promise<void> {
  Object.assign(globalThis, globals);
  const gpu = create([]);
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { gpu, userAgent: "Node" } });
  if (!(await gpu.requestAdapter({ powerPreference: "high-performance" })))
    throw new Error(
      "Dawn finds no Vulkan, Metal or Direct3D driver on this machine. Install the GPU's driver (on Linux with its " +
        "Vulkan loader, libvulkan1), or name one in VK_ICD_FILENAMES.",
    );
}

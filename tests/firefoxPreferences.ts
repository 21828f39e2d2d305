/** Preferences under which WebGPU runs on Mesa's software Vulkan, without a display. */
export const firefoxPreferences = {
  "dom.webgpu.enabled": true,
  "dom.webgpu.workers.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
};

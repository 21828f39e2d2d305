import puppeteer, { type Browser, type LaunchOptions } from "puppeteer-core";

/** A Firefox without a display in which WebGPU runs, on Mesa's software Vulkan if need be. */
export const launchFirefox = (options: LaunchOptions = {}): Promise<Browser> =>
  puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.RINGLET_FIREFOX ?? "",
    headless: true,
    extraPrefsFirefox: {
      "dom.webgpu.enabled": true,
      "dom.webgpu.workers.enabled": true,
      "gfx.webgpu.ignore-blocklist": true,
    },
    ...options,
  });

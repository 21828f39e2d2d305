import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { findBrowser, softwareGpuArguments } from "../../scripts/browser.mjs";
import { UserError } from "./userError";

/** Which WebGPU adapter headless tabs use; `auto` takes a hardware adapter where the browser finds one. */
export type AdapterChoice = "auto" | "hardware" | "software";

const hardwareGpuArguments = [
  ...softwareGpuArguments.filter((argument) => !argument.startsWith("--use-webgpu-adapter")),
  "--enable-features=Vulkan",
  "--enable-gpu",
];

/** A headless browser whose tabs run members. */
export interface HeadlessBrowser {
  readonly adapter: "hardware" | "software";
  /** A new tab at `url`, in a browsing context of its own (storage and cookies apart from the others). */
  openTab(url: string, prepare?: (page: Page) => Promise<void>): Promise<Page>;
  close(): Promise<void>;
}

/**
 * Starts the installed Chromium, Chrome or Edge without a display.
 * @throws UserError when none is installed, when it does not start, or when a hardware adapter was asked for and there is none.
 */
export async function openBrowser(choice: AdapterChoice, probeUrl: string): Promise<HeadlessBrowser> {
  const executablePath = findBrowser();
  if (!executablePath) {
    throw new UserError(
      "No Chromium, Chrome or Edge is installed on this machine; install one (Debian: apt install chromium) or set RINGLET_BROWSER to its path.",
    );
  }
  if (choice !== "software") {
    const browser = await launch(executablePath, hardwareGpuArguments);
    if (await hasHardwareAdapter(browser, probeUrl)) return headless(browser, "hardware");
    await browser.close();
    if (choice === "hardware") {
      throw new UserError(
        "This machine's browser offers no hardware WebGPU adapter; leave --adapter at auto, or use --adapter software.",
      );
    }
  }
  return headless(await launch(executablePath, softwareGpuArguments), "software");
}

async function launch(executablePath: string, args: string[]): Promise<Browser> {
  try {
    return await chromium.launch({ executablePath, args });
  } catch (error) {
    throw new UserError(`The browser ${executablePath} did not start: ${firstLine(error)}`);
  }
}

const firstLine = (error: unknown): string =>
  String(error instanceof Error ? error.message : error).split("\n")[0] ?? "";

async function hasHardwareAdapter(browser: Browser, probeUrl: string): Promise<boolean> {
  const page = await browser.newPage();
  // navigator.gpu exists in secure contexts only, so the probe needs a page of the server's.
  await page.goto(probeUrl);
  return page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    return adapter ? !adapter.info.isFallbackAdapter : false;
  });
}

function headless(browser: Browser, adapter: "hardware" | "software"): HeadlessBrowser {
  const contexts: BrowserContext[] = [];
  return {
    adapter,
    async openTab(url, prepare) {
      const context = await browser.newContext();
      contexts.push(context);
      const page = await context.newPage();
      await prepare?.(page);
      await page.goto(url);
      return page;
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
      await browser.close();
    },
  };
}

import { defineBrowserProvider } from "@vitest/browser";
import type { Browser } from "puppeteer-core";
import type { BrowserProvider } from "vitest/node";
import { launchFirefox } from "./launchFirefox.ts";

/** Vitest's browser mode in an installed Firefox, over WebDriver BiDi: Playwright drives only a build of its own. */
class FirefoxProvider implements BrowserProvider {
  readonly name = "puppeteer";
  readonly supportsParallelism = false;
  #browser: Promise<Browser> | null = null;

  getCommandsContext(): Record<string, unknown> {
    return {};
  }

  async openPage(_sessionId: string, url: string): Promise<void> {
    this.#browser ??= launchFirefox();
    const page = await (await this.#browser).newPage();
    await page.goto(url);
  }

  async close(): Promise<void> {
    await (await this.#browser)?.close();
    this.#browser = null;
  }
}

export const firefox = defineBrowserProvider({ name: "puppeteer", providerFactory: () => new FirefoxProvider() });

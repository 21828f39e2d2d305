import type { Page } from "playwright-core";
import { type AdapterChoice, type HeadlessBrowser, openBrowser } from "../src/cli/tabs";

/** Where and how a part of the bench runs. */
export interface Bench {
  readonly url: string;
  readonly adapter: AdapterChoice;
  readonly quick: boolean;
  progress(text: string): void;
}

/** Hands `use` a browser that has seen nothing yet, and closes it. */
export async function inFreshBrowser<T>(
  { url, adapter }: Bench,
  use: (browser: HeadlessBrowser) => Promise<T>,
): Promise<T> {
  const browser = await openBrowser(adapter, `${url}/bench/training.html`);
  try {
    return await use(browser);
  } finally {
    await browser.close();
  }
}

/** Hands `use` a tab with one of the bench's pages, in which `global` stands, and closes it. */
export async function inTab<T>(
  browser: HeadlessBrowser,
  { url, progress }: Bench,
  file: string,
  global: string,
  use: (page: Page) => Promise<T>,
): Promise<T> {
  const page = await browser.openTab(`${url}/bench/${file}`, async (tab) => {
    tab.on("pageerror", (error) => progress(`The page failed: ${error.message}`));
    await tab.exposeFunction("reportProgress", progress);
  });
  try {
    await page.waitForFunction((name) => name in window, global, { timeout: 120_000 });
    return await use(page);
  } finally {
    await page.close();
  }
}

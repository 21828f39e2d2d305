import type { Page } from "playwright-core";
import type { HeadlessBrowser } from "../../src/cli/tabs";
import type { DeviceLimits } from "./deviceLimits";
import type { EngineName } from "./engine";
import type { AdapterDescription, TrainingPlan, TrainingResult } from "./results";

const plans = {
  full: {
    mlp: { warmUpSteps: 8, rounds: 12, stepsPerTurn: 3 },
    cnn: { warmUpSteps: 3, rounds: 6, stepsPerTurn: 1 },
  },
  quick: {
    mlp: { warmUpSteps: 3, rounds: 3, stepsPerTurn: 2 },
    cnn: { warmUpSteps: 3, rounds: 2, stepsPerTurn: 1 },
  },
} as const;

export interface BrowserDescription {
  readonly version: string;
  readonly adapter: AdapterDescription;
}

export async function describeBrowser(browser: HeadlessBrowser, url: string): Promise<BrowserDescription> {
  const page = await openTab(browser, url);
  const adapter = await page.evaluate(() => window.trainingBench.describeAdapter());
  const version = page.context().browser()?.version() ?? "of unknown version";
  await page.close();
  return { version, adapter };
}

async function openTab(browser: HeadlessBrowser, url: string, prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const page = await browser.openTab(`${url}/bench/training.html`, prepare);
  await page.waitForFunction(() => "trainingBench" in window, null, { timeout: 60_000 });
  return page;
}

export async function measureLimits(browser: HeadlessBrowser, url: string): Promise<DeviceLimits> {
  const page = await openTab(browser, url);
  const limits = await page.evaluate(() => window.trainingBench.measureDeviceLimits());
  await page.close();
  return limits;
}

/** MLP, then CNN, each in a fresh tab. */
export async function measureTraining(
  browser: HeadlessBrowser,
  url: string,
  quick: boolean,
  engines: readonly EngineName[],
  progress: (text: string) => void,
): Promise<TrainingResult[]> {
  const results: TrainingResult[] = [];
  for (const workload of ["mlp", "cnn"] as const) {
    const plan: TrainingPlan = { workload, engines, seed: 1, ...plans[quick ? "quick" : "full"][workload] };
    const page = await openTab(browser, url, async (tab) => {
      tab.on("pageerror", (error) => progress(`The page failed: ${error.message}`));
      await tab.exposeFunction("reportProgress", progress);
    });
    results.push(await page.evaluate((given) => window.trainingBench.train(given), plan));
    await page.close();
  }
  return results;
}

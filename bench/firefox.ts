import { findFirefox } from "../scripts/browser.mjs";
import { launchFirefox } from "../tests/launchFirefox";
import type { AdapterDescription } from "./adapter";
import type { Bench } from "./tab";
import { plans } from "./training/plans";
import type { TrainingPlan, TrainingResult } from "./training/results";
import { workloadNames } from "./training/workloads";

export interface FirefoxResult {
  readonly version: string;
  readonly adapter: AdapterDescription;
  /** Ringlet alone: the comparison is with its own steps in Chromium. */
  readonly training: readonly TrainingResult[];
}

const longestMinutes = 10;

/** Ringlet trains the workloads in an installed Firefox, on Mesa's software Vulkan where there is no GPU. */
export async function measureInFirefox({ url, quick, progress }: Bench): Promise<FirefoxResult | null> {
  const executablePath = findFirefox();
  if (!executablePath) {
    progress("No Firefox is installed, so its steps are left out.");
    return null;
  }
  const browser = await launchFirefox({ executablePath, protocolTimeout: longestMinutes * 60_000 });
  try {
    const training: TrainingResult[] = [];
    let adapter: AdapterDescription | null = null;
    for (const workload of workloadNames) {
      progress(`Firefox: ${workload}`);
      const page = await browser.newPage();
      page.on("pageerror", (error) => progress(`The page failed: ${String(error)}`));
      await page.exposeFunction("reportProgress", () => {});
      await page.goto(`${url}/bench/training.html`);
      await page.waitForFunction(() => "trainingBench" in window, { timeout: 120_000 });
      adapter ??= await page.evaluate(() => window.trainingBench.describeAdapter());
      const plan: TrainingPlan = {
        ...{ workload, engines: ["ringlet"], seed: 1 },
        ...plans[quick ? "quick" : "full"][workload],
      };
      training.push(await page.evaluate((given) => window.trainingBench.train(given), plan));
      await page.close();
    }
    if (!adapter) throw new Error("There is no workload to measure in Firefox.");
    return { version: await browser.version(), adapter, training };
  } finally {
    await browser.close();
  }
}

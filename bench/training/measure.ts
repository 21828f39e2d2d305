import type { Page } from "playwright-core";
import type { HeadlessBrowser } from "../../src/cli/tabs";
import type { AdapterDescription } from "../adapter";
import { type Bench, inFreshBrowser, inTab } from "../tab";
import type { DeviceLimits } from "./deviceLimits";
import type { EngineName } from "./engine";
import { plans } from "./plans";
import type { RepeatedFirstStep, TrainingPlan, TrainingResult } from "./results";
import type { WorkloadName } from "./workloads";

export interface BrowserDescription {
  readonly version: string;
  readonly adapter: AdapterDescription;
}

const inTrainingTab = <T>(browser: HeadlessBrowser, bench: Bench, use: (page: Page) => Promise<T>): Promise<T> =>
  inTab(browser, bench, "training.html", "trainingBench", use);

export const describeBrowser = (browser: HeadlessBrowser, bench: Bench): Promise<BrowserDescription> =>
  inTrainingTab(browser, bench, async (page) => ({
    adapter: await page.evaluate(() => window.trainingBench.describeAdapter()),
    version: page.context().browser()?.version() ?? "of unknown version",
  }));

export const measureLimits = (browser: HeadlessBrowser, bench: Bench): Promise<DeviceLimits> =>
  inTrainingTab(browser, bench, (page) => page.evaluate(() => window.trainingBench.measureDeviceLimits()));

export interface MeasuredTraining {
  readonly training: TrainingResult;
  readonly firstStepsAgain: readonly RepeatedFirstStep[];
}

/** All engines train a workload, in a browser that is new to it; then each takes a first step once more, in tabs of their own. */
export function measureTraining(
  bench: Bench,
  workload: WorkloadName,
  engines: readonly EngineName[],
): Promise<MeasuredTraining> {
  const plan: TrainingPlan = { workload, engines, seed: 1, ...plans[bench.quick ? "quick" : "full"][workload] };
  return inFreshBrowser(bench, async (browser) => {
    const training = await inTrainingTab(browser, bench, (page) =>
      page.evaluate((given) => window.trainingBench.train(given), plan),
    );
    const firstStepsAgain: RepeatedFirstStep[] = [];
    for (const engine of bench.quick ? [] : engines) {
      bench.progress(`${workload}: ${engine} begins once more`);
      const milliseconds = await inTrainingTab(browser, bench, (page) =>
        page.evaluate((of) => window.trainingBench.firstStep(of.engine, of.workload, 1), { engine, workload }),
      );
      firstStepsAgain.push({ workload, engine, milliseconds });
    }
    return { training, firstStepsAgain };
  });
}

import type { Browser, BrowserContext, Page } from "@playwright/test";
import type { JobAuditLine, JobResult } from "../src/job/result";
import { defaultSpec, type JobSpec } from "../src/job/spec";
import { type RunningServer, startServer } from "../src/server/server";
import type { JobAddress } from "../src/worker/api";
import type { HeadlessProgress } from "../src/worker/headless";

/** The product's server on ports that are free. */
export const startTestServer = (): Promise<RunningServer> => startServer({ port: 0, httpsPort: null, stunPort: 0 });

/** The MLP with SGD and momentum, for which promise 1 is stated. */
export const mlpSpec = (changes: Partial<JobSpec>): JobSpec => ({
  ...defaultSpec("mlp"),
  optimizer: {
    name: "sgd",
    learningRate: 0.05,
    momentum: 0.9,
    dampening: 0,
    nesterov: false,
    weightDecay: 0,
    maximize: false,
  },
  batch: 60,
  steps: 60,
  seed: 7,
  validateEvery: 0,
  ...changes,
});

/** A tab without a display that runs one member. */
export class MemberTab {
  private constructor(
    readonly page: Page,
    private readonly context: BrowserContext,
  ) {}

  static async open(browser: Browser, server: RunningServer): Promise<MemberTab> {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.localUrl}headless.html`);
    await page.waitForFunction(() => "ringletTab" in globalThis);
    return new MemberTab(page, context);
  }

  create(spec: JobSpec, name: string, waitFor = 1): Promise<JobAddress> {
    return this.page.evaluate(([jobSpec, who, count]) => ringletTab.create(jobSpec, who, count), [
      spec,
      name,
      waitFor,
    ] as const);
  }

  join(address: JobAddress, name: string): Promise<void> {
    return this.page.evaluate(([link, who]) => ringletTab.join(link, who), [address, name] as const);
  }

  leave(): Promise<void> {
    return this.page.evaluate(() => ringletTab.leave());
  }

  progress(): Promise<HeadlessProgress | null> {
    return this.page.evaluate(() => ringletTab.progress());
  }

  result(): Promise<JobResult> {
    return this.page.evaluate(() => ringletTab.result());
  }

  audit(): Promise<readonly JobAuditLine[]> {
    return this.page.evaluate(() => ringletTab.audit());
  }

  /** Resolves once `step` steps are committed. */
  async reaches(step: number): Promise<void> {
    await this.page.waitForFunction((target) => (ringletTab.progress()?.step ?? 0) >= target, step, {
      polling: 20,
      timeout: 120_000,
    });
  }

  /** Resolves once this tab is in a ring of `count`. */
  async isInRingOf(count: number): Promise<void> {
    await this.page.waitForFunction((n) => ringletTab.progress()?.members === n, count, {
      polling: 20,
      timeout: 60_000,
    });
  }

  async finishes(): Promise<void> {
    await this.page.waitForFunction(
      () => {
        const phase = ringletTab.progress()?.phase;
        if (phase?.kind === "failed") throw new Error(phase.message);
        return phase?.kind === "finished";
      },
      undefined,
      { polling: 100, timeout: 150_000 },
    );
  }

  /** As when a person closes the tab. */
  close(): Promise<void> {
    return this.context.close();
  }
}

import { pid } from "node:process";
import type { Page } from "playwright-core";
import type { HeadlessBrowser } from "../../src/cli/tabs";
import { chooseAllReduce } from "../../src/distributed/algorithms/choose";
import { connect, link, measureSize } from "../allReduce/measure";
import type { AllReduceResult } from "../allReduce/results";
import { spread } from "../statistics";
import type { GroupTurn } from "./groupTurn";
import type { CpuResult, LatencyResult } from "./results";
import { cpuSecondsByThread, pageThread } from "./threads";

const megabyte = 1e6;
const worldSizes = (quick: boolean) => (quick ? [2] : [2, 3, 4]);
/** A small one is repeated within a turn, so that a turn is long enough to time. */
const largeSizes = [
  { bytes: 1 * megabyte, repetitions: 6 },
  { bytes: 16 * megabyte, repetitions: 1 },
  { bytes: 64 * megabyte, repetitions: 1 },
];
const smallSizes = [1024, 4096, 16_384, 65_536];
const cpuBytes = 16 * megabyte;

export interface Between {
  readonly browser: HeadlessBrowser;
  readonly url: string;
  readonly quick: boolean;
  progress(text: string): void;
}

async function openTabs({ browser, url }: Between, worldSize: number): Promise<Page[]> {
  const tabs: Page[] = [];
  for (let rank = 0; rank < worldSize; rank += 1) {
    const page = await browser.openTab(`${url}/bench/collectives.html`);
    await page.waitForFunction(() => "collectivesBench" in window, null, { timeout: 60_000 });
    tabs.push(page);
  }
  return tabs;
}

/** Large all-reduces against the pinned bare channels. */
export async function measureLarge(between: Between): Promise<AllReduceResult[]> {
  const results: AllReduceResult[] = [];
  const { quick, progress } = between;
  for (const worldSize of worldSizes(quick)) {
    const tabs = await openTabs(between, worldSize);
    await connect(tabs);
    for (const size of quick ? largeSizes.slice(0, 1) : largeSizes)
      results.push(await measureSize(tabs, size, quick ? 3 : size.bytes > 20 * megabyte ? 6 : 10, progress));
    for (const tab of tabs) await tab.close();
  }
  return results;
}

/** Small all-reduces against their messages over bare channels, and then the CPU time of a large one. */
export async function measureGroups(between: Between): Promise<{ latency: LatencyResult[]; cpu: CpuResult[] }> {
  const { quick, progress } = between;
  const latency: LatencyResult[] = [];
  const cpu: CpuResult[] = [];
  for (const worldSize of worldSizes(quick)) {
    progress(`latency: ${worldSize} tabs connect`);
    const tabs = await openTabs(between, worldSize);
    for (const purpose of ["bare", "ring"] as const)
      for (const [a, tab] of tabs.entries())
        for (const [b, other] of tabs.entries()) if (a < b) await link(tab, a, other, b, purpose);
    await Promise.all(tabs.map((tab) => tab.evaluate(() => window.allReduceBench.allOpen())));
    const prepare = (tab: Page, rank: number) =>
      tab.evaluate(([self, size]) => window.collectivesBench.prepareGroup(self, size), [rank, worldSize] as const);
    await Promise.all(tabs.map(prepare));
    for (const bytes of smallSizes) latency.push(await measureLatency(tabs, bytes, quick ? 3 : 15));
    const result = await measureCpu(tabs, quick ? 1 : 6);
    if (result !== null) cpu.push(result);
    for (const tab of tabs) await tab.close();
  }
  return { latency, cpu };
}

const groupTurn = async (tabs: readonly Page[], turn: GroupTurn): Promise<number> =>
  Math.max(...(await Promise.all(tabs.map((tab) => tab.evaluate((t) => window.collectivesBench.groupTurn(t), turn)))));
const bareTurn = async (tabs: readonly Page[], turn: GroupTurn): Promise<number> =>
  Math.max(...(await Promise.all(tabs.map((tab) => tab.evaluate((t) => window.collectivesBench.bareTurn(t), turn)))));

async function measureLatency(tabs: readonly Page[], bytes: number, rounds: number): Promise<LatencyResult> {
  const worldSize = tabs.length;
  const place = { rank: 0, worldSize };
  const turn = { bytes, repetitions: 12 };
  await groupTurn(tabs, turn);
  await bareTurn(tabs, turn);
  const own: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Who begins alternates, so that neither has the other's aftermath more often.
    if (round % 2 === 0) own.push(await groupTurn(tabs, turn));
    bare.push(await bareTurn(tabs, turn));
    if (round % 2 === 1) own.push(await groupTurn(tabs, turn));
  }
  return {
    tabs: worldSize,
    bytes,
    algorithm: chooseAllReduce(place, bytes)(place, bytes / 4).algorithm,
    milliseconds: spread(own),
    bareMilliseconds: spread(bare),
    ratio: spread(own.map((milliseconds, round) => milliseconds / bare[round]!)),
  };
}

/** Null where there is no /proc. */
async function measureCpu(tabs: readonly Page[], repetitions: number): Promise<CpuResult | null> {
  const worldSize = tabs.length;
  const before = cpuSecondsByThread(pid);
  await groupTurn(tabs, { bytes: cpuBytes, repetitions });
  const after = cpuSecondsByThread(pid);
  if (before === null || after === null) return null;
  const sent = (repetitions * 2 * (worldSize - 1) * cpuBytes) / megabyte;
  const isPage = (name: string) => name === pageThread;
  const seconds = (of: ReadonlyMap<string, number>, isWanted: (name: string) => boolean) =>
    [...of].reduce((sum, [name, value]) => (isWanted(name) ? sum + value : sum), 0);
  const between = (isWanted: (name: string) => boolean) =>
    (seconds(after, isWanted) - seconds(before, isWanted)) / sent;
  return { tabs: worldSize, bytes: cpuBytes, page: between(isPage), rest: between((name) => !isPage(name)) };
}

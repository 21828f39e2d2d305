import { cpuUsage, pid } from "node:process";
import type { Page } from "playwright-core";
import type { HeadlessBrowser } from "../../src/cli/tabs";
import { cpuSecondsOfTree } from "../machine";
import { type Spread, spread } from "../statistics";
import type { Purpose } from "./connections";
import type { AllReduceResult, SideResult, Turn } from "./results";

const megabyte = 1e6;
/** Float32 data of these sizes; a small one is repeated within a turn, so that a turn is long enough to time. */
const sizes = [
  { bytes: 1 * megabyte, repetitions: 6 },
  { bytes: 16 * megabyte, repetitions: 1 },
];
const worldSizes = [2, 3];
/** Time for the tabs to be told of a turn before it begins. */
const noticeMilliseconds = 100;

type Side = "ring" | "bare";

interface Measured {
  readonly milliseconds: number;
  readonly cpuSeconds: number | null;
}

/** Every size between every number of tabs, the two sides in turns. */
export async function measureAllReduce(
  browser: HeadlessBrowser,
  url: string,
  quick: boolean,
  progress: (text: string) => void,
): Promise<AllReduceResult[]> {
  const results: AllReduceResult[] = [];
  for (const worldSize of worldSizes) {
    progress(`all-reduce: ${worldSize} tabs connect`);
    const tabs: Page[] = [];
    for (let rank = 0; rank < worldSize; rank += 1) tabs.push(await openTab(browser, url));
    await connect(tabs);
    for (const size of sizes) results.push(await measureSize(tabs, size, quick ? 3 : 10, progress));
    for (const tab of tabs) await tab.close();
  }
  return results;
}

async function openTab(browser: HeadlessBrowser, url: string): Promise<Page> {
  const page = await browser.openTab(`${url}/bench/allReduce.html`);
  await page.waitForFunction(() => "allReduceBench" in window, null, { timeout: 60_000 });
  return page;
}

/** Links every pair of neighbours twice, once for each side. This program is the signaling. */
export async function connect(tabs: readonly Page[]): Promise<void> {
  const pairs = tabs.flatMap((_, a) => tabs.slice(a + 1).map((_, index) => [a, a + 1 + index] as const));
  for (const purpose of ["bare", "ring"] as const)
    for (const [a, b] of pairs) await link(tabs[a]!, a, tabs[b]!, b, purpose);
  await Promise.all(tabs.map((tab) => tab.evaluate(() => window.allReduceBench.allOpen())));
  await Promise.all(
    tabs.map((tab, rank) =>
      tab.evaluate(([self, worldSize]) => window.allReduceBench.prepare(self, worldSize), [rank, tabs.length] as const),
    ),
  );
}

export async function link(tabA: Page, a: number, tabB: Page, b: number, purpose: Purpose): Promise<void> {
  const offer = await tabA.evaluate(([to, what]) => window.allReduceBench.offer(to, what), [b, purpose] as const);
  const answer = await tabB.evaluate(([to, what, sdp]) => window.allReduceBench.answer(to, what, sdp), [
    a,
    purpose,
    offer,
  ] as const);
  await tabA.evaluate(([to, what, sdp]) => window.allReduceBench.accept(to, what, sdp), [b, purpose, answer] as const);
}

export async function measureSize(
  tabs: readonly Page[],
  { bytes, repetitions }: { bytes: number; repetitions: number },
  rounds: number,
  progress: (text: string) => void,
): Promise<AllReduceResult> {
  progress(`all-reduce: ${bytes / megabyte} MB between ${tabs.length} tabs`);
  const length = bytes / 4;
  const turn = (side: Side) => takeTurn(tabs, side, length, repetitions);
  // The first exchanges open SCTP's window and warm the code up.
  await turn("bare");
  await turn("ring");
  const measured: Record<Side, Measured[]> = { ring: [], bare: [] };
  for (let round = 0; round < rounds; round += 1)
    // Who begins alternates, so that neither has the other's aftermath more often.
    for (const side of round % 2 === 0 ? (["bare", "ring"] as const) : (["ring", "bare"] as const))
      measured[side].push(await turn(side));

  const worldSize = tabs.length;
  const bytesSentByEach = (2 * (worldSize - 1) * bytes) / worldSize;
  const side = (turns: readonly Measured[]): SideResult => ({
    milliseconds: spread(turns.map(({ milliseconds }) => milliseconds)),
    megabytesPerSecond: spread(turns.map(({ milliseconds }) => bytesSentByEach / megabyte / (milliseconds / 1000))),
    cpuSecondsPerMegabyte: spreadWhereKnown(
      turns.map(({ cpuSeconds }) =>
        cpuSeconds === null ? null : cpuSeconds / ((worldSize * bytesSentByEach) / megabyte),
      ),
    ),
  });
  return {
    tabs: worldSize,
    bytes,
    bytesSentByEach,
    repetitionsPerTurn: repetitions,
    ring: side(measured.ring),
    bare: side(measured.bare),
    share: spread(measured.ring.map(({ milliseconds }, round) => measured.bare[round]!.milliseconds / milliseconds)),
  };
}

const spreadWhereKnown = (values: readonly (number | null)[]): Spread | null => {
  const known = values.filter((value) => value !== null);
  return known.length === values.length ? spread(known) : null;
};

/** Times and CPU seconds of one all-reduce: a turn's, divided by its repetitions. The last tab's end counts. */
async function takeTurn(tabs: readonly Page[], side: Side, length: number, repetitions: number): Promise<Measured> {
  const turnOf = (rank: number, startAt: number): Turn => ({
    rank,
    worldSize: tabs.length,
    length,
    repetitions,
    startAt,
  });
  if (side === "ring")
    await Promise.all(
      tabs.map((tab, rank) => tab.evaluate((turn) => window.allReduceBench.fillData(turn), turnOf(rank, 0))),
    );
  const startAt = Date.now() + noticeMilliseconds;
  const before = browserCpuSeconds();
  const times = await Promise.all(
    tabs.map((tab, rank) =>
      side === "ring"
        ? tab.evaluate((turn) => window.allReduceBench.ringTurn(turn), turnOf(rank, startAt))
        : tab.evaluate((turn) => window.allReduceBench.bareTurn(turn), turnOf(rank, startAt)),
    ),
  );
  const after = browserCpuSeconds();
  if (side === "ring") {
    const hashes = await Promise.all(
      tabs.map((tab, rank) => tab.evaluate((turn) => window.allReduceBench.checkData(turn), turnOf(rank, 0))),
    );
    if (new Set(hashes).size !== 1) throw new Error(`The tabs' results differ in their bits: ${hashes.join(", ")}.`);
  }
  return {
    milliseconds: Math.max(...times) / repetitions,
    cpuSeconds: before === null || after === null ? null : (after - before) / repetitions,
  };
}

/** What all processes that this program started have used, itself left out. */
function browserCpuSeconds(): number | null {
  const tree = cpuSecondsOfTree(pid);
  if (tree === null) return null;
  const { user, system } = cpuUsage();
  return tree - (user + system) / 1e6;
}

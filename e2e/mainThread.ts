import type { Browser, Page } from "@playwright/test";

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds that the thread itself ran, without those in which the system let others run. */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** The milliseconds that each task of a page's main thread took of that thread's time, for so long. */
export async function mainThreadTasks(browser: Browser, page: Page, milliseconds: number): Promise<readonly number[]> {
  await browser.startTracing(page, { categories: ["-*", "disabled-by-default-devtools.timeline"] });
  await page.waitForTimeout(milliseconds);
  const trace: { readonly traceEvents: readonly TraceEvent[] } = JSON.parse((await browser.stopTracing()).toString());
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`;
  const isMain = ({ name, args }: TraceEvent) => name === "thread_name" && args.name === "CrRendererMain";
  const threads = new Set(trace.traceEvents.filter(isMain).map(threadOf));
  return trace.traceEvents.flatMap((event) => {
    if (event.name !== "RunTask" || !threads.has(threadOf(event))) return [];
    if (event.tdur === undefined) throw new Error("This browser's traces don't tell the time that a thread ran.");
    return [event.tdur / 1000];
  });
}

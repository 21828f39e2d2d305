import { type Bench, inFreshBrowser, inTab } from "../tab";
import type { EngineName } from "../training/engine";
import type { AttentionMemory } from "./attentionMemory";
import type { OperatorPlan, OperatorResult } from "./results";
import { type OperatorGroup, operatorRows } from "./rows";

const repetitions = {
  full: { millisecondsPerRow: 6000, fewestRounds: 3, mostRounds: 15 },
  quick: { millisecondsPerRow: 500, fewestRounds: 1, mostRounds: 3 },
} as const;

/** All rows of a group, in a browser of its own. */
export function measureOperators(
  bench: Bench,
  group: OperatorGroup,
  engines: readonly EngineName[],
): Promise<OperatorResult[]> {
  const plan: OperatorPlan = {
    rows: operatorRows.filter((row) => row.group === group),
    engines,
    ...repetitions[bench.quick ? "quick" : "full"],
  };
  return inFreshBrowser(bench, (browser) =>
    inTab(browser, bench, "operators.html", "operatorBench", (page) =>
      page.evaluate((given) => window.operatorBench.measure(given), plan),
    ),
  );
}

const lengths = { full: [256, 1024, 4096], quick: [256, 1024] } as const;

/** What Ringlet's attention holds at several lengths, each in a tab of its own. */
export function measureAttentionMemory(bench: Bench): Promise<AttentionMemory[]> {
  return inFreshBrowser(bench, async (browser) => {
    const results: AttentionMemory[] = [];
    for (const length of lengths[bench.quick ? "quick" : "full"]) {
      bench.progress(`memory of attention: ${length}`);
      results.push(
        await inTab(browser, bench, "operators.html", "operatorBench", (page) =>
          page.evaluate((of) => window.operatorBench.measureAttentionMemory(of), length),
        ),
      );
    }
    return results;
  });
}

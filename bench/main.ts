import { readFileSync, writeFileSync } from "node:fs";
import { argv, exit, stderr, stdout } from "node:process";
import { measureAllReduce } from "./allReduce/measure";
import { measureInFirefox } from "./firefox";
import { describeMachine, watchOtherPrograms } from "./machine";
import { measureAttentionMemory, measureOperators } from "./operators/measure";
import type { OperatorResult } from "./operators/results";
import { operatorGroups } from "./operators/rows";
import { type BenchOptions, help, isComplete, type Part, readOptions } from "./options";
import { report } from "./report";
import { type BenchResults, readVersions } from "./results";
import { serveBench } from "./server";
import { type Bench, inFreshBrowser } from "./tab";
import { describeBrowser, type MeasuredTraining, measureLimits, measureTraining } from "./training/measure";
import { workloadNames } from "./training/workloads";

const resultsFile = new URL("results.json", import.meta.url);
const performanceFile = new URL("../docs/performance.md", import.meta.url);
/** The tables in docs/performance.md stand between these. */
const markers = { begin: "<!-- measured by npm run bench -->", end: "<!-- end of what was measured -->" };

const sentence = (error: unknown) => (error instanceof Error ? error.message : String(error));
const progress = (text: string) => void stderr.write(`${text}\n`);

async function measure(options: BenchOptions): Promise<BenchResults> {
  const start = new Date();
  const machine = describeMachine();
  const coresUsedByOthers = watchOtherPrograms();
  const server = await serveBench();
  const { adapter, quick, engines } = options;
  const bench: Bench = { url: server.url, adapter, quick, progress };
  const asked = (part: Part) => options.parts.includes(part);
  try {
    const { browser, limits } = await inFreshBrowser(bench, async (tabs) => ({
      browser: await describeBrowser(tabs, bench),
      limits: await measureLimits(tabs, bench),
    }));
    const operators: OperatorResult[] = [];
    for (const group of operatorGroups.filter(asked))
      operators.push(...(await measureOperators(bench, group, engines)));
    const training: MeasuredTraining[] = [];
    for (const workload of workloadNames.filter(asked)) training.push(await measureTraining(bench, workload, engines));
    return {
      date: start.toISOString(),
      machine,
      browser,
      versions: readVersions(),
      limits,
      operators,
      training: training.map((of) => of.training),
      firstStepsAgain: training.flatMap((of) => of.firstStepsAgain),
      attentionMemory: asked("memory") ? await measureAttentionMemory(bench) : [],
      firefox: asked("firefox") ? await measureInFirefox(bench) : null,
      allReduce: asked("all-reduce")
        ? await inFreshBrowser(bench, (tabs) => measureAllReduce(tabs, server.url, quick, progress))
        : [],
      coresUsedByOthers: coresUsedByOthers(),
      minutes: (Date.now() - start.getTime()) / 60_000,
    };
  } finally {
    await server.close();
  }
}

function write(results: BenchResults, text: string): void {
  const page = readFileSync(performanceFile, "utf8");
  const begin = page.indexOf(markers.begin);
  const end = page.indexOf(markers.end);
  if (begin < 0 || end < begin)
    throw new Error(`docs/performance.md has lost the lines "${markers.begin}" and "${markers.end}".`);
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(performanceFile, `${page.slice(0, begin + markers.begin.length)}\n\n${text}\n${page.slice(end)}`);
}

async function main(): Promise<number> {
  let options: BenchOptions | null;
  try {
    options = readOptions(argv.slice(2));
  } catch (error) {
    progress(sentence(error));
    return 2;
  }
  if (options === null) {
    stdout.write(`${help}\n`);
    return 0;
  }
  try {
    const results = await measure(options);
    const text = report(results);
    stdout.write(`\n${text}`);
    if (isComplete(options)) write(results, text);
    return 0;
  } catch (error) {
    progress(sentence(error));
    return 1;
  }
}

exit(await main());

import { readFileSync, writeFileSync } from "node:fs";
import { argv, exit, stderr, stdout } from "node:process";
import { openBrowser } from "../src/cli/tabs";
import { measureAllReduce } from "./allReduce/measure";
import { describeMachine, watchOtherPrograms } from "./machine";
import { type BenchOptions, help, isComplete, readOptions } from "./options";
import { report } from "./report";
import { type BenchResults, readVersions } from "./results";
import { serveBench } from "./server";
import { describeBrowser, measureLimits, measureTraining } from "./training/measure";

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
  try {
    const browser = await openBrowser(options.adapter, `${server.url}/bench/training.html`);
    try {
      return {
        date: start.toISOString(),
        machine,
        browser: await describeBrowser(browser, server.url),
        versions: readVersions(),
        limits: await measureLimits(browser, server.url),
        training: options.parts.includes("training")
          ? await measureTraining(browser, server.url, options.quick, options.engines, progress)
          : [],
        allReduce: options.parts.includes("all-reduce")
          ? await measureAllReduce(browser, server.url, options.quick, progress)
          : [],
        coresUsedByOthers: coresUsedByOthers(),
        minutes: (Date.now() - start.getTime()) / 60_000,
      };
    } finally {
      await browser.close();
    }
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

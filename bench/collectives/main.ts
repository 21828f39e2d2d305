import { readFileSync, writeFileSync } from "node:fs";
import { argv, exit, stderr, stdout } from "node:process";
import { parseArgs } from "node:util";
import { messageOf } from "../../src/base/messageOf";
import { openBrowser } from "../../src/cli/tabs";
import { describeMachine, watchOtherPrograms } from "../machine";
import { readVersions } from "../results";
import { serveBench } from "../server";
import { measureGloo } from "./gloo";
import { measureGroups, measureLarge } from "./measure";
import { report } from "./report";
import type { CollectivesResults } from "./results";

const help = `npm run bench:collectives -- [options]

Measures collectives between tabs of Chromium on this machine, prints tables, and writes bench/collectives.json and a
section of docs/performance.md.

  --quick              few sizes and repetitions: to see that it runs. Prints, and writes nothing.
  --help               this text`;

const resultsFile = new URL("../collectives.json", import.meta.url);
const performanceFile = new URL("../../docs/performance.md", import.meta.url);
const markers = {
  begin: "<!-- measured by npm run bench:collectives -->",
  end: "<!-- end of what was measured by npm run bench:collectives -->",
};
const progress = (text: string) => void stderr.write(`${text}\n`);

async function measure(quick: boolean): Promise<CollectivesResults> {
  const start = new Date();
  const coresUsedByOthers = watchOtherPrograms();
  const server = await serveBench();
  try {
    const browser = await openBrowser("software", `${server.url}/bench/collectives.html`);
    try {
      const between = { browser, url: server.url, quick, progress };
      const allReduce = await measureLarge(between);
      const { latency, cpu } = await measureGroups(between);
      const used = coresUsedByOthers();
      progress("overlap, in virtual time");
      const loaded = await server.load("/bench/collectives/overlap.ts");
      const measureOverlap: typeof import("./overlap").measureOverlap = loaded.measureOverlap;
      const overlap = await measureOverlap(quick);
      progress("PyTorch's gloo");
      return {
        date: start.toISOString(),
        machine: describeMachine(),
        commit: readVersions().commit,
        coresUsedByOthers: used,
        allReduce,
        latency,
        cpu,
        overlap,
        gloo: measureGloo(quick),
        minutes: (Date.now() - start.getTime()) / 60_000,
      };
    } finally {
      await browser.close();
    }
  } finally {
    await server.close();
  }
}

function write(results: CollectivesResults, text: string): void {
  const page = readFileSync(performanceFile, "utf8");
  const [begin, end] = [page.indexOf(markers.begin), page.indexOf(markers.end)];
  if (begin < 0 || end < begin)
    throw new Error(`docs/performance.md has lost the lines "${markers.begin}" and "${markers.end}".`);
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(performanceFile, `${page.slice(0, begin + markers.begin.length)}\n\n${text}\n${page.slice(end)}`);
}

async function main(): Promise<number> {
  try {
    const { values } = parseArgs({
      args: argv.slice(2),
      options: { quick: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
    });
    if (values.help) {
      stdout.write(`${help}\n`);
      return 0;
    }
    const results = await measure(values.quick);
    const text = report(results);
    stdout.write(`\n${text}`);
    if (!values.quick) write(results, text);
    return 0;
  } catch (error) {
    progress(messageOf(error));
    return 1;
  }
}

exit(await main());

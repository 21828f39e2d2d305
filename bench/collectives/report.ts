import type { AllReduceResult } from "../allReduce/results";
import { percent, significant, table, withQuartiles } from "../markdown";
import { allReduceTable } from "../report";
import type { CollectivesResults, CpuResult, GlooResult, LatencyResult, OverlapResult } from "./results";

/** The results as Markdown, which reads as well in a terminal. */
export function report(results: CollectivesResults): string {
  const { machine, commit, coresUsedByOthers, gloo } = results;
  const about = [
    `Measured ${results.date.slice(0, 16).replace("T", " ")} UTC in ${results.minutes.toFixed(1)} minutes on ${machine.cores} cores (${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system})`,
    `${commit === null ? "" : ` at ${commit}`}.`,
    ...(coresUsedByOthers === null
      ? []
      : [` Other programs kept ${coresUsedByOthers.toFixed(1)} of the cores busy meanwhile, on average.`]),
  ].join("");
  return `${[
    about,
    `### Large all-reduces\n\n${allReduceTable(results.allReduce)}${validity(results.allReduce)}`,
    `### Small all-reduces\n\n${latencyTable(results.latency)}`,
    `### CPU time, s for each MB that any tab sends\n\n${cpuTable(results.cpu)}`,
    `### Overlap and memory, over simulated links of 1 MB/s\n\n${overlapTable(results.overlap)}`,
    `### PyTorch's gloo over loopback\n\n${gloo === null ? "python3-torch isn't installed here." : glooTable(gloo)}`,
  ].join("\n\n")}\n`;
}

/** Bare channels that cost more say that something else kept the machine busy. */
const cpuLimit = 0.15;
const validity = (results: readonly AllReduceResult[]) =>
  results.some(({ bare }) => (bare.cpuSecondsPerMegabyte?.median ?? 0) > cpuLimit)
    ? `\n\nRows whose bare channels took more than ${cpuLimit} CPU s/MB are void: run it on an idle machine.`
    : "";

const kibibytes = (bytes: number) => `${bytes / 1024} KiB`;
const megabytes = (bytes: number) => (bytes / 1e6).toFixed(2);

const latencyTable = (results: readonly LatencyResult[]) =>
  table(
    ["Data", "Tabs", "Algorithm", "All-reduce, ms (quartiles)", "Its messages alone, ms", "Times as long"],
    results.map(({ bytes, tabs, algorithm, milliseconds, bareMilliseconds, ratio }) => [
      kibibytes(bytes),
      String(tabs),
      algorithm,
      withQuartiles(milliseconds),
      withQuartiles(bareMilliseconds),
      withQuartiles(ratio),
    ]),
  );

const cpuTable = (results: readonly CpuResult[]) =>
  table(
    ["Data, MB", "Tabs", "Pages' threads", "All the rest", "Together"],
    results.map(({ bytes, tabs, page, rest }) => [
      String(bytes / 1e6),
      String(tabs),
      significant(page),
      significant(rest),
      significant(page + rest),
    ]),
  );

const overlapTable = (results: readonly OverlapResult[]) =>
  table(
    [
      "Model, MB",
      "Ranks",
      "Compute, s",
      "Communication, s",
      "Step, s",
      "Of the longer",
      "Extra MB a member",
      "Largest bucket, MB",
    ],
    results.map((one) => [
      megabytes(one.modelBytes),
      String(one.peers),
      significant(one.computeMilliseconds / 1000),
      significant(one.communicationMilliseconds / 1000),
      significant(one.stepMilliseconds / 1000),
      percent(one.stepMilliseconds / Math.max(one.computeMilliseconds, one.communicationMilliseconds)),
      megabytes(one.extraBytes),
      megabytes(one.largestBucketBytes),
    ]),
  );

const glooTable = ({ torch, rows }: GlooResult) =>
  table(
    ["Data, MB", "Processes", `PyTorch ${torch}, ms`],
    rows.map(({ peers, bytes, milliseconds }) => [String(bytes / 1e6), String(peers), significant(milliseconds)]),
  );

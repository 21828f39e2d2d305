import { engineTitles, percent, significant, table, withQuartiles } from "../markdown";
import type { EngineName } from "../training/engine";
import type { AttentionMemory } from "./attentionMemory";
import type { OperatorResult, Runner } from "./results";

/** One line a row: Ringlet's time and rate, and how many times as long the others take. */
export function operatorTable(results: readonly OperatorResult[]): string {
  return table(
    [
      "Operator",
      "Ringlet, ms (quartiles)",
      "Rate",
      "Dispatches",
      "TensorFlow.js, ms",
      "jax-js, ms",
      "Ringlet is, of TensorFlow.js",
      "Ringlet is, of jax-js",
      "Of the pinned kernel",
    ],
    results.map((result) => [
      result.row.name,
      timeOf(result, "ringlet"),
      rateOf(result),
      String(result.runners.find(({ runner }) => runner === "ringlet")?.dispatches ?? ""),
      medianOf(result, "tensorflow"),
      medianOf(result, "jax"),
      timesOf(result, "tensorflow"),
      timesOf(result, "jax"),
      shareOf(result),
    ]),
  );
}

const runnerOf = ({ runners }: OperatorResult, name: Runner) => runners.find(({ runner }) => runner === name);
const ratioOf = ({ ratios }: OperatorResult, name: Runner) => ratios.find(({ runner }) => runner === name)?.ratio;

function timeOf(result: OperatorResult, name: Runner): string {
  const found = runnerOf(result, name);
  return found ? withQuartiles(found.milliseconds) : "";
}

function medianOf(result: OperatorResult, name: Runner): string {
  const found = runnerOf(result, name);
  return found ? significant(found.milliseconds.median) : "";
}

function timesOf(result: OperatorResult, name: Runner): string {
  const ratio = ratioOf(result, name);
  return ratio ? `${withQuartiles(ratio)} times as fast` : "";
}

/** The pinned kernel's time as a share of Ringlet's. */
function shareOf(result: OperatorResult): string {
  const ratio = ratioOf(result, "pinned");
  return ratio ? percent(ratio.median) : "";
}

function rateOf(result: OperatorResult): string {
  const found = runnerOf(result, "ringlet");
  if (!found) return "";
  const { operations, bytes } = result.work;
  const perSecond = (operations ?? bytes) / found.milliseconds.median / 1e6;
  return `${significant(perSecond)} ${operations === null ? "GB/s" : "GFLOP/s"}`;
}

/** What the tables say in one line each: means over the matmuls, and the rows where Ringlet is behind. */
export function operatorSummary(results: readonly OperatorResult[]): string {
  const sentences: string[] = [];
  for (const engine of ["tensorflow", "jax"] as const satisfies readonly EngineName[]) {
    const ratios = results.flatMap((result) =>
      result.row.group === "matmul" ? (ratioOf(result, engine)?.median ?? []) : [],
    );
    if (ratios.length === 0) continue;
    const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
    sentences.push(
      `Matmul, geometric mean of all sizes: ${significant(mean)} times as fast as ${engineTitles[engine]}, at least ${significant(Math.min(...ratios))}.`,
    );
  }
  const behind = results.flatMap(({ row, ratios }) =>
    ratios.flatMap(({ runner, ratio }) =>
      runner !== "pinned" && ratio.median < 1 ? `${row.name} (${engineTitles[runner]})` : [],
    ),
  );
  sentences.push(behind.length > 0 ? `Ringlet is behind in: ${behind.join(", ")}.` : "Ringlet is behind in no row.");
  const largest = Math.max(...results.map(({ largestDifference }) => largestDifference));
  sentences.push(`The engines' values agree to ${largest.toExponential(1)} of the largest.`);
  return sentences.join("\n");
}

export const attentionMemoryTable = (results: readonly AttentionMemory[]): string =>
  table(
    ["Length", "Held, MB", "Least, MB", "Bytes for each place", "Step, ms"],
    results.map(({ length, bytes, leastBytes, milliseconds }) => [
      String(length),
      significant(bytes / 1e6),
      significant(leastBytes / 1e6),
      String(Math.round(bytes / length)),
      significant(milliseconds),
    ]),
  );

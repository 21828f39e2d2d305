import type { AllReduceResult } from "./allReduce/results";
import type { BenchResults } from "./results";
import type { Spread } from "./statistics";
import type { DeviceLimits } from "./training/deviceLimits";
import type { EngineName } from "./training/engine";
import type { EngineResult, TrainingResult } from "./training/results";

/** The results as Markdown, which reads as well in a terminal. */
export function report(results: BenchResults): string {
  const { machine, browser, versions } = results;
  const { vendor, architecture, description, isFallbackAdapter } = browser.adapter;
  const adapter = [vendor, architecture, description].filter((part) => part !== "").join(" ");
  const about = [
    `Measured ${results.date.slice(0, 16).replace("T", " ")} UTC in ${results.minutes.toFixed(1)} minutes on ${machine.cores} cores (${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}),`,
    `Chromium ${browser.version}, WebGPU adapter ${adapter}${isFallbackAdapter ? " (software)" : ""};`,
    `Ringlet ${versions.ringlet}${versions.commit ? ` at ${versions.commit}` : ""}, TensorFlow.js ${versions.tensorflow}, jax-js ${versions.jax}.`,
    ...(results.coresUsedByOthers === null
      ? []
      : [`Other programs kept ${results.coresUsedByOthers.toFixed(1)} of the cores busy meanwhile, on average.`]),
  ].join("\n");
  const sections = [about];
  if (results.training.length > 0)
    sections.push(
      `### Training in one tab\n\n${trainingTable(results.training)}`,
      `### What a step asks of WebGPU, after warm-up\n\n${countsTable(results.training)}`,
      results.training.map((result) => `${limit(result, results.limits)}${agreement(result)}`).join("\n\n"),
    );
  if (results.allReduce.length > 0)
    sections.push(`### All-reduce between tabs\n\n${allReduceTable(results.allReduce)}`);
  return `${sections.join("\n\n")}\n`;
}

const engineTitles: Readonly<Record<EngineName, string>> = {
  ringlet: "Ringlet",
  tensorflow: "TensorFlow.js",
  jax: "jax-js",
};

function trainingTable(results: readonly TrainingResult[]): string {
  return table(
    ["Model", "Engine", "Steps/s", "Step, ms (quartiles)", "GFLOP/s", "Ringlet is", "First step, s"],
    results.flatMap((result) =>
      result.engines.map((engine) => [
        result.workload.toUpperCase(),
        engineTitles[engine.engine],
        significant(engine.stepsPerSecond),
        withQuartiles(engine.stepMilliseconds),
        significant((2 * result.multiplyAddsPerStep) / (engine.stepMilliseconds.median * 1e6)),
        ratioTo(result, engine),
        significant(engine.firstStepMilliseconds / 1000),
      ]),
    ),
  );
}

function ratioTo({ ratios }: TrainingResult, { engine }: EngineResult): string {
  const found = ratios.find((entry) => entry.engine === engine);
  return found ? `${withQuartiles(found.ratio)} times as fast` : "";
}

function countsTable(results: readonly TrainingResult[]): string {
  const columns = ["buffers", "bytes", "pipelines", "bindGroups", "dispatches", "submits", "writes"] as const;
  return table(
    [
      "Model",
      "Engine",
      "Buffers",
      "Their bytes",
      "Pipelines",
      "Bind groups",
      "Dispatches",
      "Submits",
      "Writes",
      "Held, MB",
      "Pipelines in all",
    ],
    results.flatMap((result) =>
      result.engines.map((engine) => [
        result.workload.toUpperCase(),
        engineTitles[engine.engine],
        ...columns.map((name) => String(Math.round(engine.countsPerStep[name] * 100) / 100)),
        significant(engine.liveBytes / 1e6),
        String(engine.warmUpCounts.pipelines),
      ]),
    ),
  );
}

/** What a step can't be faster than on this adapter, and how far Ringlet is from that. */
function limit(result: TrainingResult, { multiplyAddsPerSecond, bytesPerSecond }: DeviceLimits): string {
  const { workload, multiplyAddsPerStep, minimumBytesPerStep, engines } = result;
  const arithmetic = (1000 * multiplyAddsPerStep) / multiplyAddsPerSecond;
  const memory = (1000 * minimumBytesPerStep) / bytesPerSecond;
  const ringlet = engines.find(({ engine }) => engine === "ringlet");
  return [
    `${workload.toUpperCase()}: a step is ${significant(multiplyAddsPerStep / 1e6)} million multiply-adds and at least ${significant(minimumBytesPerStep / 1e6)} MB.`,
    `At the adapter's ${significant((2 * multiplyAddsPerSecond) / 1e9)} GFLOP/s from registers and ${significant(bytesPerSecond / 1e9)} GB/s between buffers these take ${significant(arithmetic)} and ${significant(memory)} ms.`,
    ringlet
      ? `Ringlet's step takes ${significant(ringlet.stepMilliseconds.median / Math.max(arithmetic, memory))} times the larger of the two. `
      : "",
  ].join(" ");
}

const agreement = ({ comparedSteps, largestLossDifference, engines }: TrainingResult) =>
  engines.length > 1
    ? `The engines' losses of the first ${comparedSteps} steps agree to a relative ${largestLossDifference.toExponential(1)}.`
    : "";

function allReduceTable(results: readonly AllReduceResult[]): string {
  return table(
    [
      "Data, MB",
      "Tabs",
      "Ring, ms (quartiles)",
      "Bare channels, ms",
      "Share of bare",
      "Each tab sends, MB/s",
      "CPU s/MB, ring",
      "CPU s/MB, bare",
    ],
    results.map(({ bytes, tabs, ring, bare, share }) => [
      String(bytes / 1e6),
      String(tabs),
      withQuartiles(ring.milliseconds),
      withQuartiles(bare.milliseconds),
      `${percent(share.median)} (${percent(share.lowerQuartile)}-${percent(share.upperQuartile)})`,
      significant(ring.megabytesPerSecond.median),
      ring.cpuSecondsPerMegabyte ? significant(ring.cpuSecondsPerMegabyte.median) : "",
      bare.cpuSecondsPerMegabyte ? significant(bare.cpuSecondsPerMegabyte.median) : "",
    ]),
  );
}

const percent = (value: number) => `${Math.round(value * 100)}%`;

const withQuartiles = ({ median, lowerQuartile, upperQuartile }: Spread) =>
  `${significant(median)} (${significant(lowerQuartile)}-${significant(upperQuartile)})`;

/** Three digits, without an exponent. */
function significant(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(digits);
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(3, title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

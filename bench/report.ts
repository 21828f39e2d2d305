import type { AllReduceResult } from "./allReduce/results";
import type { FirefoxResult } from "./firefox";
import { adapterName, engineTitles, percent, significant, table, withQuartiles } from "./markdown";
import { attentionMemoryTable, operatorSummary, operatorTable } from "./operators/report";
import type { BenchResults } from "./results";
import type { DeviceLimits } from "./training/deviceLimits";
import type { EngineResult, RepeatedFirstStep, TrainingResult } from "./training/results";

/** The results as Markdown, which reads as well in a terminal. */
export function report(results: BenchResults): string {
  const { machine, browser, versions } = results;
  const about = [
    `Measured ${results.date.slice(0, 16).replace("T", " ")} UTC in ${results.minutes.toFixed(1)} minutes on ${machine.cores} cores (${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}),`,
    `Chromium ${browser.version}, WebGPU adapter ${adapterName(browser.adapter)};`,
    `Ringlet ${versions.ringlet}${versions.commit ? ` at ${versions.commit}` : ""}, TensorFlow.js ${versions.tensorflow}, jax-js ${versions.jax}.`,
    ...(results.coresUsedByOthers === null
      ? []
      : [`Other programs kept ${results.coresUsedByOthers.toFixed(1)} of the cores busy meanwhile, on average.`]),
  ].join("\n");
  const sections = [about];
  if (results.operators.length > 0)
    sections.push(`### Operators\n\n${operatorTable(results.operators)}\n\n${operatorSummary(results.operators)}`);
  if (results.attentionMemory.length > 0)
    sections.push(`### What attention holds\n\n${attentionMemoryTable(results.attentionMemory)}`);
  if (results.training.length > 0)
    sections.push(
      `### Training in one tab\n\n${trainingTable(results.training, results.firstStepsAgain)}`,
      `### What a step asks of WebGPU, after warm-up\n\n${countsTable(results.training)}`,
      results.training.map((result) => `${limit(result, results.limits)}${agreement(result)}`).join("\n\n"),
    );
  if (results.firefox) sections.push(`### Ringlet in Firefox\n\n${firefoxTable(results.firefox, results.training)}`);
  if (results.allReduce.length > 0)
    sections.push(`### All-reduce between tabs\n\n${allReduceTable(results.allReduce)}`);
  return `${sections.join("\n\n")}\n`;
}

function trainingTable(results: readonly TrainingResult[], again: readonly RepeatedFirstStep[]): string {
  const repeated = (result: TrainingResult, { engine }: EngineResult) =>
    again.find((one) => one.workload === result.workload && one.engine === engine)?.milliseconds;
  return table(
    [
      "Model",
      "Engine",
      "Steps/s",
      "Step, ms (quartiles)",
      "Of it page's thread, ms",
      "GFLOP/s",
      "Ringlet is",
      "First step, s",
      "Again, s",
    ],
    results.flatMap((result) =>
      result.engines.map((engine) => [
        result.workload.toUpperCase(),
        engineTitles[engine.engine],
        significant(engine.stepsPerSecond),
        withQuartiles(engine.stepMilliseconds),
        significant(engine.pageMilliseconds.median),
        significant((2 * result.multiplyAddsPerStep) / (engine.stepMilliseconds.median * 1e6)),
        ratioTo(result, engine),
        significant(engine.firstStepMilliseconds / 1000),
        secondsOf(repeated(result, engine)),
      ]),
    ),
  );
}

const secondsOf = (milliseconds: number | undefined): string =>
  milliseconds === undefined ? "" : significant(milliseconds / 1000);

function firefoxTable({ version, adapter, training }: FirefoxResult, inChromium: readonly TrainingResult[]): string {
  const stepsPerSecond = (result: TrainingResult | undefined) => {
    const found = result?.engines.find(({ engine }) => engine === "ringlet");
    return found ? significant(found.stepsPerSecond) : "";
  };
  const rows = training.map((result) => {
    const [ringlet] = result.engines;
    const chromium = inChromium.find(({ workload }) => workload === result.workload);
    return [
      result.workload.toUpperCase(),
      stepsPerSecond(result),
      stepsPerSecond(chromium),
      ringlet ? withQuartiles(ringlet.stepMilliseconds) : "",
      ringlet ? significant(ringlet.firstStepMilliseconds / 1000) : "",
    ];
  });
  const header = ["Model", "Steps/s in Firefox", "In Chromium", "Step in Firefox, ms (quartiles)", "First step, s"];
  return `${version}, WebGPU adapter ${adapterName(adapter)}.\n\n${table(header, rows)}`;
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

export function allReduceTable(results: readonly AllReduceResult[]): string {
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

import { adapterName, percent, significant, table, withQuartiles } from "../markdown";
import type { OperatorResult } from "../operators/results";
import type { DeviceLimits } from "../training/deviceLimits";
import type { TrainingResult } from "../training/results";
import type { NodeResults } from "./results";

/** The results as Markdown. */
export function report({ adapter, limits, operators, training }: NodeResults): string {
  const flops = 2 * limits.multiplyAddsPerSecond;
  const half = limits.halfMultiplyAddsPerSecond;
  const sections = [
    `WebGPU adapter ${adapterName(adapter)}, in Node ${process.version} over Dawn: ${significant(flops / 1e9)} GFLOP/s from registers in f32, ` +
      `${half === null ? "no f16" : `${significant((2 * half) / 1e9)} GFLOP/s in f16`}, ${significant(limits.bytesPerSecond / 1e9)} GB/s between buffers.`,
  ];
  if (operators.length > 0) sections.push(operatorTable(operators, limits));
  if (training.length > 0) sections.push(trainingTable(training, flops));
  return `${sections.join("\n\n")}\n`;
}

const operatorTable = (results: readonly OperatorResult[], limits: DeviceLimits) =>
  table(
    ["Operator", "ms (quartiles)", "Rate", "Of the adapter's", "Dispatches", "Of the pinned kernel"],
    results.map(({ row, work: { operations, bytes }, runners, ratios }) => {
      const [ringlet] = runners;
      const { milliseconds, dispatches } = ringlet!;
      const perSecond = (1000 * (operations ?? bytes)) / milliseconds.median;
      const most = operations === null ? limits.bytesPerSecond : 2 * limits.multiplyAddsPerSecond;
      const pinned = ratios.find(({ runner }) => runner === "pinned");
      return [
        row.name,
        withQuartiles(milliseconds),
        `${significant(perSecond / 1e9)} ${operations === null ? "GB/s" : "GFLOP/s"}`,
        percent(perSecond / most),
        String(dispatches),
        pinned ? percent(pinned.ratio.median) : "",
      ];
    }),
  );

const trainingTable = (results: readonly TrainingResult[], flops: number) =>
  table(
    [
      "Model",
      "Steps/s",
      "Step, ms (quartiles)",
      "Of it page's thread, ms",
      "GFLOP/s",
      "Of the adapter's",
      "Dispatches",
      "Submits",
      "First step, s",
    ],
    results.map(({ workload, multiplyAddsPerStep, engines }) => {
      const [ringlet] = engines;
      const { stepsPerSecond, stepMilliseconds, pageMilliseconds, countsPerStep, firstStepMilliseconds } = ringlet!;
      const perSecond = (2000 * multiplyAddsPerStep) / stepMilliseconds.median;
      return [
        workload.toUpperCase(),
        significant(stepsPerSecond),
        withQuartiles(stepMilliseconds),
        significant(pageMilliseconds.median),
        significant(perSecond / 1e9),
        percent(perSecond / flops),
        String(countsPerStep.dispatches),
        significant(countsPerStep.submits),
        significant(firstStepMilliseconds / 1000),
      ];
    }),
  );

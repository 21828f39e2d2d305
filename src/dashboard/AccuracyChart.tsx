import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { JobSpec } from "../job/spec";
import { formatCount, formatLoss, formatPercent } from "./format";
import { Plot } from "./Plot";
import { stepPlotOptions } from "./plotOptions";
import { lossVersion, snapshot } from "./state";
import { themeColor } from "./theme";

function build(readout: (text: string) => void) {
  return stepPlotOptions({
    readout,
    formatValue: (value) => `${Math.round(value * 1000) / 10}%`,
    valueRange: (least) => [Math.max(0, Math.floor(least * 10 - 0.2) / 10), 1],
    readAt: (plot, index) => {
      const step = plot.data[0][index] ?? 0;
      const found = snapshot.peek()?.validations.find((validation) => validation.step === step);
      return found === undefined
        ? ""
        : `step ${formatCount(step)}: ${formatPercent(found.accuracy, 2)}, loss ${formatLoss(found.loss)}`;
    },
    series: [
      {
        stroke: themeColor("--accuracy"),
        width: 2.5,
        points: { show: true, size: 7, fill: themeColor("--panel"), stroke: themeColor("--accuracy"), width: 2 },
      },
    ],
  });
}

const firstAt = (spec: JobSpec | undefined): string =>
  spec === undefined || spec.validateEvery === 0 || spec.validateEvery > spec.steps
    ? "Measured at the end"
    : `First measured after step ${formatCount(spec.validateEvery)}`;

/** The share of validation digits read rightly, at each validation. */
export function AccuracyChart() {
  const validations = snapshot.value?.validations;
  const version = lossVersion.value;
  const data = useMemo((): uPlot.AlignedData => {
    // The axis of steps grows with every step, as the loss's does.
    void version;
    const known = validations ?? [];
    return [known.map((validation) => validation.step), known.map((validation) => validation.accuracy)];
  }, [version, validations]);
  const last = validations?.at(-1);
  const summary =
    last === undefined
      ? "Validation accuracy: not measured yet."
      : `Validation accuracy: ${formatPercent(last.accuracy, 1)} at step ${formatCount(last.step)}.`;
  return (
    <Plot
      title="Validation accuracy"
      build={build}
      data={data}
      summary={summary}
      empty={last === undefined ? firstAt(snapshot.value?.spec) : null}
    />
  );
}

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { formatCount, formatLoss, formatPercent } from "./format";
import { Plot } from "./Plot";
import { stepPlotOptions } from "./plotOptions";
import { snapshot } from "./state";
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

/** The share of validation digits read rightly, at each validation. */
export function AccuracyChart() {
  const validations = snapshot.value?.validations;
  const count = validations?.length ?? 0;
  // Snapshots carry all validations every time; the number of them says when there is something new.
  const data = useMemo((): uPlot.AlignedData => {
    const known = validations ?? [];
    return [known.map((validation) => validation.step), known.map((validation) => validation.accuracy)];
  }, [count]);
  const last = validations?.at(-1);
  const summary =
    last === undefined
      ? "Validation accuracy: not measured yet."
      : `Validation accuracy: ${formatPercent(last.accuracy, 1)} at step ${formatCount(last.step)}.`;
  return <Plot title="Validation accuracy" build={build} data={data} height={150} summary={summary} />;
}

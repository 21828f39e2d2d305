import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { formatCount, formatLoss } from "./format";
import { Plot } from "./Plot";
import { stepPlotOptions } from "./plotOptions";
import { losses, lossVersion } from "./state";
import { themeColor } from "./theme";

/** About one point for each pixel of a wide screen. */
const pointLimit = 1000;

function build(readout: (text: string) => void) {
  return stepPlotOptions({
    readout,
    formatValue: (value) => (value >= 10 ? value.toFixed(0) : String(Math.round(value * 1000) / 1000)),
    valueRange: (_, greatest) => [0, greatest > 0 ? greatest * 1.04 : 1],
    readAt: (plot, index) => {
      const step = (plot.data[0][index] ?? 0) - 1;
      return `step ${formatCount(step + 1)}: ${formatLoss(losses.raw(step))}, smoothed ${formatLoss(losses.smoothed(step))}`;
    },
    series: [
      { stroke: themeColor("--loss-raw"), width: 1, points: { show: false } },
      { stroke: themeColor("--loss"), width: 2.5, points: { show: false } },
    ],
  });
}

/** The training loss: each step's, and its moving average over it. */
export function LossChart() {
  const version = lossVersion.value;
  const data = useMemo((): uPlot.AlignedData => {
    // The series is the same object for good; its version says when it grew.
    void version;
    const { steps, raw, smoothed } = losses.curve(pointLimit);
    return [steps, raw, smoothed];
  }, [version]);
  const last = version - 1;
  const summary =
    version === 0
      ? "Training loss: no step yet."
      : `Training loss: ${formatLoss(losses.smoothed(last))} after ${formatCount(version)} steps, ${formatLoss(losses.raw(0))} at the first.`;
  return (
    <Plot
      title="Training loss"
      build={build}
      data={data}
      summary={summary}
      empty={version === 0 ? "Drawn from the first step on" : null}
    />
  );
}

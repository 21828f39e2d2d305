import type uPlot from "uplot";
import { formatCount } from "./format";
import { snapshot } from "./state";
import { themeColor } from "./theme";

const font = "12px Inter, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/** Steps from 0 to the present one on both plots, so that they line up. */
function stepRange(): [number, number] {
  const now = snapshot.peek();
  return [0, now === null ? 10 : Math.max(now.step, Math.min(now.spec.steps, 10))];
}

const axis = (): uPlot.Axis => ({
  font,
  stroke: themeColor("--ink-2"),
  grid: { stroke: themeColor("--grid"), width: 1 },
  ticks: { show: false },
  border: { show: false },
});

interface StepPlot {
  readonly series: uPlot.Series[];
  readonly formatValue: (value: number) => string;
  readonly valueRange: (least: number, greatest: number) => [number, number];
  readonly readAt: (plot: uPlot, index: number) => string;
  readonly readout: (text: string) => void;
}

/** What the plots over steps have in common. */
export function stepPlotOptions({
  series,
  formatValue,
  valueRange,
  readAt,
  readout,
}: StepPlot): Omit<uPlot.Options, "width" | "height"> {
  return {
    padding: [10, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "steps" }, drag: { x: false, y: false }, y: false, points: { size: 7 } },
    scales: {
      x: { time: false, range: stepRange },
      y: { range: (_, least, greatest) => valueRange(least ?? 0, greatest ?? 1) },
    },
    axes: [
      {
        ...axis(),
        size: 28,
        gap: 6,
        values: (_, splits) => splits.map(formatCount),
        incrs: [
          1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000, 20_000, 25_000, 50_000, 100_000,
        ],
      },
      { ...axis(), size: 52, gap: 8, values: (_, splits) => splits.map(formatValue), space: 36 },
    ],
    series: [{}, ...series],
    hooks: {
      setCursor: [
        (plot) => {
          const index = plot.cursor.idx;
          readout(index === null || index === undefined ? "" : readAt(plot, index));
        },
      ],
    },
  };
}

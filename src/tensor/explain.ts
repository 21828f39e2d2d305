import type { Plan, Step } from "./plan";
import { describeShape } from "./shape";

/** A plan as a table for a person: a line a kernel, in the order in which they run. */
export function explainPlan({ steps, scratchBytes, scratchCount, peakBytes }: Plan): string {
  return [
    `${summary(steps)}; ${size(scratchBytes)} of scratch memory in ${scratchCount} buffers, ` +
      `in which results hold at most ${size(peakBytes)} at once.`,
    ...table(columns, steps),
  ].join("\n");
}

/**
 * The same of steps that were timed, with the time of each, what share of all that is, and the kernels that took most.
 * @param milliseconds of each step.
 */
export function explainTimes(steps: readonly Step[], milliseconds: readonly number[]): string {
  const total = milliseconds.reduce((sum, time) => sum + time, 0);
  const share = (time: number): string => (total > 0 ? `${((100 * time) / total).toFixed(1)}%` : "-");
  const timed: Column[] = [
    ...columns,
    { title: "time", isNumber: true, cell: (_, i) => `${milliseconds[i]!.toFixed(3)} ms` },
    { title: "share", isNumber: true, cell: (_, i) => share(milliseconds[i]!) },
  ];
  const byKernel = new Map<string, { readonly calls: number; readonly time: number }>();
  for (const [i, { kernel }] of steps.entries()) {
    const { calls, time } = byKernel.get(kernel.shader.name) ?? { calls: 0, time: 0 };
    byKernel.set(kernel.shader.name, { calls: calls + 1, time: time + milliseconds[i]! });
  }
  const longest = [...byKernel].sort(([, a], [, b]) => b.time - a.time).slice(0, 5);
  return [
    `${summary(steps)}; ${total.toFixed(3)} ms on the GPU, each kernel in a pass of its own.`,
    ...table(timed, steps),
    `Most time: ${longest.map(([name, { calls, time }]) => `${name} ${share(time)} in ${calls}`).join(", ")}.`,
    "Browsers round timestamps, some to 0.1 ms: a kernel shorter than that shows 0 or one such step, by chance.",
  ].join("\n");
}

interface Column {
  readonly title: string;
  /** Whether cells are aligned to the right. */
  readonly isNumber: boolean;
  readonly cell: (step: Step, index: number) => string;
}

const list = (values: Step["writes"]): string =>
  values.map(({ dtype, shape }) => `${dtype}${describeShape(shape)}`).join(" ");

const movedBytes = ({ reads, writes }: Step): number =>
  [...reads, ...writes].reduce((sum, { bytes }) => sum + bytes, 0);

const columns: readonly Column[] = [
  { title: "", isNumber: true, cell: (_, i) => String(i + 1) },
  { title: "kernel", isNumber: false, cell: ({ kernel }) => kernel.shader.name },
  { title: "results", isNumber: false, cell: ({ writes }) => list(writes) },
  { title: "reads", isNumber: false, cell: ({ reads }) => list(reads) },
  { title: "moves", isNumber: true, cell: (step) => size(movedBytes(step)) },
  { title: "holds", isNumber: true, cell: ({ held }) => size(held) },
  { title: "computes", isNumber: true, cell: ({ work }) => count(work) },
  {
    title: "workgroups",
    isNumber: true,
    cell: ({ grid }) => grid.filter((size, d) => d === 0 || size > 1).join(" x "),
  },
];

function table(shown: readonly Column[], steps: readonly Step[]): string[] {
  const rows = steps.map((step, i) => shown.map(({ cell }) => cell(step, i)));
  const widths = shown.map(({ title }, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (shown[i]!.isNumber ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join("  ")
      .trimEnd();
  return [line(shown.map(({ title }) => title)), ...rows.map(line)];
}

function summary(steps: readonly Step[]): string {
  const work = steps.reduce((sum, step) => sum + step.work, 0);
  const moved = steps.reduce((sum, step) => sum + movedBytes(step), 0);
  return `${steps.length} kernels, about ${count(work)} operations and ${size(moved)} moved`;
}

function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function count(operations: number): string {
  if (operations < 1e3) return String(operations);
  return operations < 1e6 ? `${(operations / 1e3).toFixed(1)} k` : `${(operations / 1e6).toFixed(1)} M`;
}

import type { Plan, Step } from "./plan";
import { describeShape } from "./shape";

/** A plan as a table for a person: a line a kernel, in the order in which they run. */
export function explainPlan({ steps, scratchBytes, scratchCount }: Plan): string {
  const head = ["", "kernel", "results", "reads", "moves", "computes", "workgroups"];
  const rows = steps.map((step, i) => [
    String(i + 1),
    step.kernel.shader.name,
    list(step.writes),
    list(step.reads),
    bytesOf(step),
    count(step.work),
    step.grid.filter((size, d) => d === 0 || size > 1).join(" x "),
  ]);
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column === 0 || column >= 4 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  const total = steps.reduce((sum, { work }) => sum + work, 0);
  const moved = steps.reduce((sum, step) => sum + movedBytes(step), 0);
  return [
    `${steps.length} kernels, about ${count(total)} operations and ${size(moved)} moved; ` +
      `${size(scratchBytes)} of scratch memory in ${scratchCount} buffers.`,
    line(head),
    ...rows.map(line),
  ].join("\n");
}

const list = (values: Step["writes"]): string =>
  values.map(({ dtype, shape }) => `${dtype}${describeShape(shape)}`).join(" ");

const movedBytes = ({ reads, writes }: Step): number =>
  [...reads, ...writes].reduce((sum, { bytes }) => sum + bytes, 0);

const bytesOf = (step: Step): string => size(movedBytes(step));

function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function count(operations: number): string {
  if (operations < 1e3) return String(operations);
  return operations < 1e6 ? `${(operations / 1e3).toFixed(1)} k` : `${(operations / 1e6).toFixed(1)} M`;
}

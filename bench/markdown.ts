import type { AdapterDescription } from "./adapter";
import type { Spread } from "./statistics";
import type { EngineName } from "./training/engine";

export const engineTitles: Readonly<Record<EngineName, string>> = {
  ringlet: "Ringlet",
  tensorflow: "TensorFlow.js",
  jax: "jax-js",
};

export const adapterName = ({ vendor, architecture, description, isFallbackAdapter }: AdapterDescription): string =>
  [vendor, architecture, description, isFallbackAdapter ? "(software)" : ""].filter((part) => part !== "").join(" ");

export const percent = (value: number): string => `${Math.round(value * 100)}%`;

export const withQuartiles = ({ median, lowerQuartile, upperQuartile }: Spread): string =>
  `${significant(median)} (${significant(lowerQuartile)}-${significant(upperQuartile)})`;

/** Three digits, without an exponent. */
export function significant(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(digits);
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(3, title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

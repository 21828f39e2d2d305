import type { ModelName } from "../job/spec";

/** Stands where a value isn't known yet. */
export const unknown = "–";

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 12345.6 gives "12,346". */
export const formatCount = (value: number): string => (Number.isFinite(value) ? counts.format(value) : unknown);

/** A clock without leading zeros: "0:42", "12:05", "1:02:03". */
export function formatDuration(milliseconds: number | null): string {
  if (milliseconds === null || !Number.isFinite(milliseconds)) return unknown;
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** "0.4 ms", "37 ms", "1.25 s": three figures at most. */
export function formatMilliseconds(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return unknown;
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(milliseconds >= 10_000 ? 1 : 2)} s`;
  return `${milliseconds.toFixed(milliseconds >= 10 || milliseconds === 0 ? 0 : 1)} ms`;
}

/** Bytes a second in MB/s, a megabyte being 10^6 bytes. */
export function formatMegabytesPerSecond(bytesPerSecond: number): string {
  const megabytes = bytesPerSecond / 1e6;
  if (!Number.isFinite(megabytes)) return unknown;
  return megabytes >= 100 ? megabytes.toFixed(0) : megabytes >= 10 ? megabytes.toFixed(1) : megabytes.toFixed(2);
}

/** Four figures after the point below 1, fewer above. */
export function formatLoss(loss: number): string {
  if (!Number.isFinite(loss)) return Number.isNaN(loss) ? unknown : loss > 0 ? "∞" : "−∞";
  return loss >= 100 ? loss.toFixed(1) : loss >= 1 ? loss.toFixed(3) : loss.toFixed(4);
}

/** A fraction as "97.31%". Rounds down, so that 100% means all of them. */
export function formatPercent(fraction: number, digits = 0): string {
  if (!Number.isFinite(fraction)) return unknown;
  const scale = 10 ** digits;
  return `${(Math.floor(fraction * 100 * scale + 1e-9) / scale).toFixed(digits)}%`;
}

/** The learning rate and its like, without trailing zeros: 0.05, 1e-8. */
export const formatNumber = (value: number): string =>
  value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential().replace("e+", "e") : String(value);

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** A GPU as one line; browsers may keep all of it to themselves. */
export function formatGpu(gpu: { vendor: string; architecture: string; description: string }): string {
  const known = [gpu.vendor, gpu.architecture].filter((part) => part !== "");
  if (known.length > 0) return known.join(" · ");
  return gpu.description === "" ? "GPU not named by the browser" : gpu.description;
}

export const modelLabels: Readonly<Record<ModelName, string>> = { cnn: "CNN", mlp: "MLP" };
export const optimizerLabels = {
  sgd: "SGD",
  adam: "Adam",
  adamw: "AdamW",
  nadam: "NAdam",
  radam: "RAdam",
  adamax: "Adamax",
  adagrad: "Adagrad",
  adadelta: "Adadelta",
  rmsprop: "RMSprop",
  lion: "Lion",
} as const;

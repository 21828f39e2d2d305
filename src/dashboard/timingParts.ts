import type { StepTiming } from "../job/snapshot";

export interface TimingPart {
  readonly name: "compute" | "wire" | "optimizer" | "rest";
  readonly label: string;
  readonly milliseconds: number;
}

/** A step's parts; the rest is what the whole has beyond them, and missing where parts overlap. */
export function timingParts(timing: StepTiming): TimingPart[] {
  const rest = timing.total - timing.compute - timing.wire - timing.optimizer;
  const parts: TimingPart[] = [
    { name: "compute", label: "Compute", milliseconds: timing.compute },
    { name: "wire", label: "Wire", milliseconds: timing.wire },
    { name: "optimizer", label: "Optimizer", milliseconds: timing.optimizer },
  ];
  if (rest >= 0.05) parts.push({ name: "rest", label: "Other", milliseconds: rest });
  return parts;
}

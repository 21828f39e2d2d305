import type { JobPhase } from "../job/snapshot";

export interface PhaseText {
  readonly label: string;
  /** A sentence where the label alone leaves a question open, otherwise null. */
  readonly detail: string | null;
  readonly tone: "quiet" | "busy" | "good" | "warning" | "bad";
}

/** A phase in a person's words. */
export function phaseText(phase: JobPhase): PhaseText {
  switch (phase.kind) {
    case "connecting":
      return { label: "Connecting", detail: "Looking for the members of this job.", tone: "busy" };
    case "watching":
      return { label: "Watching", detail: null, tone: "quiet" };
    case "preparing":
      return { label: "Preparing", detail: phase.what, tone: "busy" };
    case "joining":
      return {
        label: "Joining",
        detail: "The ring grows at the next step, once this tab has the weights.",
        tone: "busy",
      };
    case "training":
      return { label: "Training", detail: null, tone: "good" };
    case "regrouping":
      return { label: "Regrouping", detail: phase.reason, tone: "warning" };
    case "paused":
      return {
        label: "Paused",
        detail: phase.reason === "" ? `${phase.by} paused the job for everyone.` : phase.reason,
        tone: "warning",
      };
    case "finished":
      return { label: "Finished", detail: "Every step is done. The trained weights are yours.", tone: "good" };
    case "stopped":
      return {
        label: "Stopped",
        detail: `${phase.by} stopped the job for everyone. The weights as they stood are yours.`,
        tone: "quiet",
      };
    case "left":
      return { label: "Left", detail: "This tab left the ring. The other members go on without it.", tone: "quiet" };
    case "failed":
      return { label: "Failed", detail: phase.message, tone: "bad" };
  }
}

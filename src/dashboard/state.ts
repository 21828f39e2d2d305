import { computed, signal } from "@preact/signals";
import type { Prediction } from "../job/replica";
import type { JobPhase, JobSnapshot } from "../job/snapshot";
import type { GpuStatus, JobAddress } from "../worker/api";
import { LossSeries } from "./lossSeries";
import { MemberColors } from "./memberColors";

/** Which page is shown. */
export type View =
  | { readonly kind: "start" }
  | { readonly kind: "opening"; readonly address: JobAddress }
  | { readonly kind: "job"; readonly address: JobAddress }
  /** A whole page that says why there is nothing else to show and what to do next. */
  | { readonly kind: "message"; readonly title: string; readonly text: string; readonly advice: string };

/** What a person asked of the worker and has not got yet. */
export type Action = "start" | "join" | "leave" | "pause" | "resume" | "stop" | "weights" | "metrics";

export const view = signal<View>({ kind: "start" });
/** Null until the worker has looked. */
export const gpu = signal<GpuStatus | null>(null);
export const snapshot = signal<JobSnapshot | null>(null);
export const busy = signal<Action | null>(null);
/** The last thing that went wrong, as a sentence, until it is dismissed. */
export const failure = signal<string | null>(null);
export const predictions = signal<readonly Prediction[]>([]);
export const predictionsFailure = signal<string | null>(null);

/** Every loss heard of so far; `lossVersion` changes when it grows. */
export const losses = new LossSeries();
export const lossVersion = signal(0);

export const phase = computed<JobPhase>(() => snapshot.value?.phase ?? { kind: "connecting" });
export const members = computed(() => snapshot.value?.members ?? []);
/** Members in the ring, by rank. */
export const ring = computed(() =>
  members.value.filter((member) => member.rank !== null).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)),
);
export const self = computed(() => members.value.find((member) => member.self) ?? null);

/** Whether the job is over for everyone. */
export const isOver = (kind: JobPhase["kind"]): boolean => kind === "finished" || kind === "stopped";

/** Whether this tab's GPU works for the job, or is about to. */
export const takesPart = (kind: JobPhase["kind"]): boolean =>
  kind === "preparing" || kind === "joining" || kind === "training" || kind === "regrouping" || kind === "paused";

const colors = new MemberColors();
const assigned = computed(() => new Map(colors.assign(members.value.map((member) => member.id))));

/** The number of a member's colour in the style sheet. */
export const colorOf = (id: string): number => assigned.value.get(id) ?? 0;

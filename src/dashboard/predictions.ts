import type * as Comlink from "comlink";
import { messageOf } from "../base/messageOf";
import type { JobSnapshot } from "../job/snapshot";
import type { RingletWorker } from "../worker/api";
import { predictions, predictionsFailure } from "./state";

/** Guesses cost the GPU a forward pass, so they are asked for seldom. */
const interval = 2000;
let asking = false;
let askedAt = Number.NEGATIVE_INFINITY;
let askedFor = "";

/** Asks the worker for new guesses when the weights may have changed since the last ones. */
export function refreshPredictions(worker: Comlink.Remote<RingletWorker>, now: JobSnapshot): void {
  const holdsWeights = now.phase.kind === "training" || now.phase.kind === "paused" || now.phase.kind === "finished";
  const state = `${now.phase.kind} ${now.step}`;
  const due = now.phase.kind !== "training" || performance.now() - askedAt >= interval;
  if (asking || document.hidden || !holdsWeights || state === askedFor || !due) return;
  asking = true;
  askedAt = performance.now();
  askedFor = state;
  worker
    .predictions()
    .then(
      (next) => {
        predictions.value = next;
        predictionsFailure.value = null;
      },
      (error: unknown) => {
        predictionsFailure.value = messageOf(error);
      },
    )
    .finally(() => {
      asking = false;
    });
}

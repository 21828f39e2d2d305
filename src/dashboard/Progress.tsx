import { formatCount, formatDuration, formatPercent } from "./format";
import { isOver, phase, snapshot } from "./state";

/** How far the job is, in steps and in time. */
export function Progress() {
  const now = snapshot.value;
  const step = now?.step ?? 0;
  const steps = now?.spec.steps ?? 1;
  return (
    <section class="progress" aria-label="Progress">
      <progress aria-label="Steps done" data-testid="progress" value={step} max={steps} />
      <p>
        <span class="progressStep">
          Step{" "}
          <strong data-testid="step" data-value={step}>
            {formatCount(step)}
          </strong>{" "}
          of {formatCount(steps)}
        </span>
        <span>{formatPercent(step / steps)}</span>
        <span class="progressTime">
          <span data-testid="elapsed">{formatDuration(now?.elapsedMilliseconds ?? null)}</span> elapsed
          {!isOver(phase.value.kind) && (
            <>
              , <span data-testid="remaining">{formatDuration(now?.remainingMilliseconds ?? null)}</span> remaining
            </>
          )}
        </span>
      </p>
    </section>
  );
}

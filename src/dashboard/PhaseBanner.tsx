import { phaseText } from "./phaseText";
import { phase } from "./state";

/** The sentence that goes with the phase, and the progress of what is being loaded. */
export function PhaseBanner() {
  const now = phase.value;
  const { detail, tone } = phaseText(now);
  const testid = now.kind === "failed" ? { "data-testid": "error" } : {};
  return (
    <div class="phaseBanner" role="status">
      {detail !== null && (
        <div class={`banner ${tone}`}>
          <p {...testid}>{detail}</p>
          {now.kind === "preparing" && (
            <progress
              aria-label={now.what}
              max={now.total}
              {...(now.total > 0 ? { value: Math.min(now.loaded, now.total) } : {})}
            />
          )}
          {(now.kind === "left" || now.kind === "failed") && (
            <button type="button" class="button" onClick={() => window.location.reload()}>
              Open the job again
            </button>
          )}
        </div>
      )}
    </div>
  );
}

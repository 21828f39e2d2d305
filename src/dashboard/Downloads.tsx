import { Icon } from "./Icon";
import { downloadMetrics, downloadWeights } from "./session";
import { busy, isOver, phase } from "./state";

/** The job's outcome, for whoever was a member. */
export function Downloads() {
  if (!isOver(phase.value.kind)) return null;
  return (
    <section class="downloads" aria-label="Downloads">
      <button
        type="button"
        class="button primary large"
        data-testid="download-weights"
        disabled={busy.value !== null}
        onClick={() => void downloadWeights()}
      >
        <Icon name="download" />
        Download weights
      </button>
      <button
        type="button"
        class="button large"
        data-testid="download-metrics"
        disabled={busy.value !== null}
        onClick={() => void downloadMetrics()}
      >
        <Icon name="download" />
        Download metrics
      </button>
      <a class="button large" href="/">
        Start another job
      </a>
      <p class="hint">Weights as safetensors with PyTorch's names; metrics as CSV.</p>
    </section>
  );
}

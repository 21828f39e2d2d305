import { useEffect } from "preact/hooks";
import { formatPercent, modelLabels } from "./format";
import { phaseText } from "./phaseText";
import { phase, snapshot } from "./state";

/** What is trained and where it stands, also in the tab's title. */
export function JobTitle() {
  const now = snapshot.value;
  const text = phaseText(phase.value);
  const done = now === null ? "" : formatPercent(now.step / now.spec.steps);
  useEffect(() => {
    document.title = `${text.label} ${done} · Ringlet`;
  }, [text.label, done]);
  return (
    <div class="jobTitle">
      <h1>{now === null ? "MNIST digits" : `MNIST digits · ${modelLabels[now.spec.model]}`}</h1>
      <p class={`phase ${text.tone}`} role="status" data-testid="phase" data-phase={phase.value.kind}>
        {text.label}
      </p>
    </div>
  );
}

import type { ComponentChildren } from "preact";
import { formatCount, formatLoss, formatPercent } from "./format";
import { losses, lossVersion, ring, snapshot } from "./state";

function Stat({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The numbers that a room wants to read from its last row. */
export function Stats() {
  const last = lossVersion.value - 1;
  const loss = losses.raw(last);
  const accuracy = snapshot.value?.validations.at(-1)?.accuracy ?? Number.NaN;
  return (
    <dl class="stats">
      <Stat label="Loss">
        <span data-testid="loss" data-value={loss}>
          {formatLoss(losses.smoothed(last))}
        </span>
      </Stat>
      <Stat label="Validation accuracy">
        <span data-testid="accuracy" data-value={accuracy}>
          {formatPercent(accuracy, 1)}
        </span>
      </Stat>
      <Stat label="Samples per second">
        <span data-testid="samples-per-second">{formatCount(snapshot.value?.samplesPerSecond ?? Number.NaN)}</span>
      </Stat>
      <Stat label="Members">{formatCount(ring.value.length)}</Stat>
    </dl>
  );
}

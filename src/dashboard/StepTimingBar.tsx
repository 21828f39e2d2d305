import { formatMilliseconds } from "./format";
import { snapshot } from "./state";
import { timingParts } from "./timingParts";

/** What a step's time goes to. */
export function StepTimingBar() {
  const timing = snapshot.value?.timing;
  const parts = timing === undefined ? [] : timingParts(timing);
  return (
    <section class="timing panel">
      <div class="panelHead">
        <h2>A step takes</h2>
        <p class="timingTotal">{formatMilliseconds(timing?.total ?? Number.NaN)}</p>
      </div>
      <div class="timingBar" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.name} class={`timingPart ${part.name}`} style={{ flexGrow: part.milliseconds }} />
        ))}
      </div>
      <ul>
        {parts.map((part) => (
          <li key={part.name}>
            <span class={`swatch ${part.name}`} aria-hidden="true" />
            {part.label} <strong>{formatMilliseconds(part.milliseconds)}</strong>
          </li>
        ))}
      </ul>
    </section>
  );
}

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { describedBy, Field } from "./Field";
import { type JobDraft, type NumberField, optimizerFields } from "./jobDraft";
import { machineNameLength } from "./machineName";

interface AdvancedFieldsProps {
  readonly draft: Signal<JobDraft>;
  readonly number: (field: NumberField, hint?: string) => ComponentChildren;
  readonly iceServers: Signal<string>;
  readonly iceError: string | undefined;
  readonly machineName: Signal<string>;
}

/** What few people need to change. */
export function AdvancedFields({ draft, number, iceServers, iceError, machineName }: AdvancedFieldsProps) {
  return (
    <details class="advanced">
      <summary>Advanced</summary>
      <div class="fields">
        {optimizerFields[draft.value.optimizer].map((field) => (
          <div key={field}>{number(field)}</div>
        ))}
        {draft.value.optimizer === "sgd" && (
          <label class="check">
            <input
              type="checkbox"
              name="nesterov"
              checked={draft.value.nesterov}
              onChange={(event) => {
                draft.value = { ...draft.value, nesterov: event.currentTarget.checked };
              }}
            />
            Nesterov momentum
          </label>
        )}
        {number("validateEvery", "0 validates at the end only")}
        <Field id="machineName" label="This machine's name" hint="What the other members see">
          <input
            id="machineName"
            type="text"
            maxLength={machineNameLength}
            value={machineName.value}
            {...describedBy("machineName", true, false)}
            onInput={(event) => {
              machineName.value = event.currentTarget.value;
            }}
          />
        </Field>
      </div>
      <Field
        id="iceServers"
        label="ICE servers"
        hint="JSON, for machines that can't reach each other directly; empty uses this server's own STUN only"
        error={iceError}
      >
        <textarea
          id="iceServers"
          rows={2}
          spellcheck={false}
          placeholder='[{"urls": "turn:turn.example.org", "username": "…", "credential": "…"}]'
          value={iceServers.value}
          aria-invalid={iceError !== undefined}
          {...describedBy("iceServers", true, iceError !== undefined)}
          onInput={(event) => {
            iceServers.value = event.currentTarget.value;
          }}
        />
      </Field>
    </details>
  );
}

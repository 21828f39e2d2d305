import { describedBy, Field } from "./Field";
import { fieldLabels, type NumberField } from "./jobDraft";

interface NumberInputProps {
  readonly field: NumberField;
  readonly value: string;
  readonly error: string | undefined;
  readonly hint?: string;
  readonly onChange: (field: NumberField, text: string) => void;
}

/** A number as text, so that 1e-3 can be written and half-written numbers survive. */
export function NumberInput({ field, value, error, hint, onChange }: NumberInputProps) {
  return (
    <Field id={field} label={fieldLabels[field]} error={error} {...(hint === undefined ? {} : { hint })}>
      <input
        id={field}
        name={field}
        type="text"
        inputMode="decimal"
        autocomplete="off"
        value={value}
        aria-invalid={error !== undefined}
        {...describedBy(field, hint !== undefined, error !== undefined)}
        onInput={(event) => onChange(field, event.currentTarget.value)}
      />
    </Field>
  );
}

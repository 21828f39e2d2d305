import type { ComponentChildren } from "preact";

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly children: ComponentChildren;
}

/** A labelled control; its hint and what is wrong with it carry the ids `ID-hint` and `ID-error`. */
export function Field({ id, label, hint, error, children }: FieldProps) {
  return (
    <div class={error === undefined ? "field" : "field invalid"}>
      <label for={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p class="fieldError" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** What `aria-describedby` of a field's control names. */
export function describedBy(id: string, hint: boolean, error: boolean): { "aria-describedby"?: string } {
  const ids = [hint && `${id}-hint`, error && `${id}-error`].filter((part) => part !== false);
  return ids.length > 0 ? { "aria-describedby": ids.join(" ") } : {};
}

import type { Validation } from "./snapshot";

/** The training's curves as this tab knows them, step by step. */
export class History {
  /** Mean loss over the global batch of each committed step. */
  readonly losses: number[] = [];
  readonly validations: Validation[] = [];
  /** Of the steps that this tab took part in, by step; holes for the others, and for times that weren't measured. */
  readonly #members: number[] = [];
  readonly #milliseconds: number[] = [];

  commit(step: number, loss: number, members: number, milliseconds: number | null): void {
    this.losses[step] = loss;
    this.#members[step] = members;
    if (milliseconds !== null) this.#milliseconds[step] = milliseconds;
  }

  validate(validation: Validation): void {
    const last = this.validations[this.validations.length - 1];
    if (last !== undefined && last.step === validation.step) this.validations.pop();
    this.validations.push(validation);
  }

  /** The step of the latest validation. */
  get validated(): number {
    return this.validations[this.validations.length - 1]?.step ?? 0;
  }

  /** Takes over what another knows from step `from` on. */
  take(from: number, losses: ArrayLike<number>, validations: readonly Validation[]): void {
    for (let index = 0; index < losses.length; index += 1) this.losses[from + index] = losses[index]!;
    for (const validation of validations) if (validation.step > this.validated) this.validations.push(validation);
  }

  /** Median and 95th percentile of the steps that this tab took part in, in milliseconds; 0 before the first. */
  get stepMilliseconds(): { readonly median: number; readonly p95: number } {
    const sorted = Object.values(this.#milliseconds).sort((a, b) => a - b);
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
    return { median: at(0.5), p95: at(0.95) };
  }

  /** Empty fields where this tab doesn't know. */
  csv(): string {
    const validations = new Map(this.validations.map((validation) => [validation.step, validation]));
    const lines = this.losses.map((loss, step) => {
      // A validation after so many steps stands in the row of the last of them.
      const validation = validations.get(step + 1);
      const milliseconds = this.#milliseconds[step];
      return [
        step,
        loss,
        validation?.loss ?? "",
        validation?.accuracy ?? "",
        this.#members[step] ?? "",
        milliseconds?.toFixed(3) ?? "",
      ].join(",");
    });
    return `${["step,loss,validation loss,validation accuracy,members,milliseconds", ...lines].join("\n")}\n`;
  }
}

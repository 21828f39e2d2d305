import type { Clock } from "../base/clock";

/** The time that a job has been training, pauses left out. */
export class Elapsed {
  readonly #clock: Clock;
  #before = 0;
  /** Since when more passes; null while it stands still. */
  #since: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get milliseconds(): number {
    return this.#before + (this.#since === null ? 0 : this.#clock.now() - this.#since);
  }

  run(): void {
    this.#since ??= this.#clock.now();
  }

  stop(): void {
    this.set(this.milliseconds);
  }

  /** Takes over what another knows, standing still. */
  set(milliseconds: number): void {
    this.#before = milliseconds;
    this.#since = null;
  }
}

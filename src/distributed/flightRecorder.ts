import type { Clock } from "../base/clock";

export type FlightState = "called" | "running" | "done" | "failed";

/** One collective, as this rank saw it. */
export interface FlightRecord {
  readonly group: number;
  readonly sequence: number;
  /** Such as "allReduce (sum) of float32[8] by ring"; what is known of it so far. */
  description: string;
  state: FlightState;
  readonly calledAt: number;
  /** Since when it has been in this state, or when the last chunk came. */
  changedAt: number;
  /** Where a running one stands. */
  progress:
    | (() => {
        readonly waitingFor: readonly number[];
        readonly received: number;
        readonly total: number;
        readonly since: number;
      })
    | null;
}

/** Keeps the last collectives of this rank, for when one of them hangs. */
export class FlightRecorder {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #records: FlightRecord[] = [];

  constructor(clock: Clock, capacity = 64) {
    this.#clock = clock;
    this.#capacity = capacity;
  }

  add(group: number, sequence: number, description: string): FlightRecord {
    const now = this.#clock.now();
    const record: FlightRecord = {
      group,
      sequence,
      description,
      state: "called",
      calledAt: now,
      changedAt: now,
      progress: null,
    };
    this.#records.push(record);
    if (this.#records.length > this.#capacity) this.#records.shift();
    return record;
  }

  update(record: FlightRecord, state: FlightState): void {
    record.state = state;
    record.changedAt = this.#clock.now();
    if (state !== "running") record.progress = null;
  }

  find(group: number, sequence: number): FlightRecord | null {
    return this.#records.findLast((record) => record.group === group && record.sequence === sequence) ?? null;
  }

  /** Where this rank stands with a collective, as the rest of a sentence. */
  whereabouts(group: number, sequence: number): string {
    const record = this.find(group, sequence);
    if (record !== null) return this.#line(record);
    const last = this.#records.findLast((one) => one.group === group);
    return last === undefined
      ? "has called no collective of this group"
      : `hasn't called it; last: ${this.#line(last)}`;
  }

  /** A line for each of the last collectives, the oldest first. */
  dump(): string {
    return this.#records.map((record) => `group ${record.group}: ${this.#line(record)}`).join("\n");
  }

  #line(record: FlightRecord): string {
    const { sequence, description, state, progress } = record;
    const what = `#${sequence} ${description}`;
    if (state === "running" && progress !== null) {
      const { waitingFor, received, total, since } = progress();
      const whom = waitingFor.length === 0 ? "for nobody" : `for rank ${waitingFor.join(", ")}`;
      return `${what}: waits ${whom} since ${this.#ago(since)}, ${received} of ${total} bytes have come`;
    }
    return `${what}: ${state} ${this.#ago(record.changedAt)} ago`;
  }

  #ago(since: number): string {
    return `${((this.#clock.now() - since) / 1000).toFixed(1)} s`;
  }
}

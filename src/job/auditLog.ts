/** One step as a member really computed its part of it. */
export interface AuditEntry {
  readonly step: number;
  readonly rank: number;
  /** What its replica was given. */
  readonly samples: Uint32Array<ArrayBuffer>;
}

/** The most sample indices that are kept (32 MB); the oldest steps go first. */
const limit = 8_000_000;

/** What this member computed for committed steps, over all the times that it was in the ring. */
export class AuditLog {
  readonly #entries: AuditEntry[] = [];
  #kept = 0;
  #samples = 0;

  /** Samples computed for committed steps. */
  get samples(): number {
    return this.#samples;
  }
  get entries(): readonly AuditEntry[] {
    return this.#entries;
  }

  record(step: number, rank: number, samples: Uint32Array<ArrayBuffer>): void {
    this.#entries.push({ step, rank, samples });
    this.#samples += samples.length;
    this.#kept += samples.length;
    while (this.#kept > limit) this.#kept -= this.#entries.shift()?.samples.length ?? this.#kept;
  }
}

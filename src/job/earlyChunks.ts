import type { Frame, MemberId } from "../transport/link";

/** What a chunk costs besides its payload, so that empty ones are bounded too. */
const overheadBytes = 64;

/** Chunks of a generation that others adopted before this member did, within bounds. */
export class EarlyChunks {
  /** Bytes that are kept at most. */
  readonly limit: number;
  #kept: { readonly from: MemberId; readonly frame: Frame }[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** @returns false when that is more than any generation can have under way. */
  keep(from: MemberId, frame: Frame): boolean {
    this.#bytes += frame.payload.length + overheadBytes;
    if (this.#bytes > this.limit) return false;
    this.#kept.push({ from, frame });
    return true;
  }

  take(): readonly { readonly from: MemberId; readonly frame: Frame }[] {
    const kept = this.#kept;
    this.#kept = [];
    this.#bytes = 0;
    return kept;
  }
}

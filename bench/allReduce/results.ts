import type { Spread } from "../statistics";

/** One turn of a contestant in one tab. */
export interface Turn {
  readonly rank: number;
  readonly worldSize: number;
  /** Float32 elements. */
  readonly length: number;
  /** All-reduces in a row, each begun when the one before is complete in this tab. */
  readonly repetitions: number;
  /** When all tabs begin, in milliseconds of Date.now(). */
  readonly startAt: number;
}

export interface SideResult {
  /** One all-reduce, until the last tab has all of it. */
  readonly milliseconds: Spread;
  /** Each tab's sending while it lasts, in 10^6 bytes a second. */
  readonly megabytesPerSecond: Spread;
  /** CPU time of the browser's processes for 10^6 bytes sent by any tab; null where it can't be read. */
  readonly cpuSecondsPerMegabyte: Spread | null;
}

export interface AllReduceResult {
  readonly tabs: number;
  /** Of the data that is reduced. */
  readonly bytes: number;
  /** What each tab sends for one all-reduce: 2 (N - 1) / N of the data. */
  readonly bytesSentByEach: number;
  readonly repetitionsPerTurn: number;
  readonly ring: SideResult;
  readonly bare: SideResult;
  /** The bare channels' time as a part of the ring's, by rounds: 1 would be as fast as the channels carry. */
  readonly share: Spread;
}

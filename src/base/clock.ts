/** What setTimeout gives back: an object in Node, a number in browsers and in virtual time. */
export type TimerHandle = ReturnType<typeof globalThis.setTimeout> | number;

/** Time as state machines see it, so that the same code runs in real and in virtual time. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
  setTimeout(callback: () => void, milliseconds: number): TimerHandle;
  clearTimeout(handle: TimerHandle): void;
}

export const realClock: Clock = {
  now: () => performance.now(),
  setTimeout: (callback, milliseconds) => globalThis.setTimeout(callback, milliseconds),
  clearTimeout: (handle) => globalThis.clearTimeout(handle),
};

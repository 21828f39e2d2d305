/**
 * Notes every timer that `run` starts, and those that their callbacks start in turn, so that `stop` ends them all.
 * For code that starts endless timers and offers no way to stop them.
 */
export class HeldTimers {
  readonly #pending = new Set<NodeJS.Timeout>();

  /** Runs `work`, which must be synchronous, with `setTimeout` watched. */
  run(work: () => void): void {
    const original = globalThis.setTimeout;
    const watched = (callback: (...args: unknown[]) => void, milliseconds?: number, ...args: unknown[]) => {
      const timer = original(() => {
        this.#pending.delete(timer);
        this.run(() => callback(...args));
      }, milliseconds);
      this.#pending.add(timer);
      return timer;
    };
    globalThis.setTimeout = Object.assign(watched, original);
    try {
      work();
    } finally {
      globalThis.setTimeout = original;
    }
  }

  stop(): void {
    for (const timer of this.#pending) clearTimeout(timer);
    this.#pending.clear();
  }
}

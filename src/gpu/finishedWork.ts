/** Browsers' timers aren't faster than this. */
const nudgeMilliseconds = 4;

/**
 * Waits for what the GPU has to finish first. Firefox looks for finished work every 100 ms, and whenever something is
 * submitted; so while something is awaited there, empty submits make it look. Other browsers tell by themselves.
 */
export class FinishedWork {
  private awaited = 0;
  private timer: ReturnType<typeof setInterval> | null = null;

  constructor(
    private readonly queue: Pick<GPUQueue, "submit">,
    private readonly needsNudges = typeof navigator !== "undefined" && navigator.userAgent.includes("Firefox/"),
  ) {}

  async wait<T>(promise: Promise<T>): Promise<T> {
    if (!this.needsNudges) return promise;
    this.awaited += 1;
    this.timer ??= setInterval(() => this.queue.submit([]), nudgeMilliseconds);
    try {
      return await promise;
    } finally {
      this.awaited -= 1;
      if (this.awaited === 0) this.stop();
    }
  }

  private stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}

import type { Clock, TimerHandle } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import type { RunState } from "./messages";

/** How long pause, resume and stop may take to be agreed on. */
const patience = 45_000;

interface Waiter {
  readonly kind: RunState["kind"];
  readonly done: Deferred<void>;
  readonly timer: TimerHandle;
}

/** Who waits here for everyone to pause, resume or stop. */
export class Agreements {
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the members do so; rejects with a sentence when they don't in time. */
  wait(kind: RunState["kind"]): Promise<void> {
    const done = deferred<void>();
    const timer = this.#clock.setTimeout(() => {
      this.#waiters.delete(waiter);
      done.reject(new Error(`The members didn't agree within ${patience / 1000} s: try again.`));
    }, patience);
    const waiter: Waiter = { kind, done, timer };
    this.#waiters.add(waiter);
    return done.promise;
  }

  /** The members do this now. */
  reached(kind: RunState["kind"]): void {
    for (const waiter of this.#waiters) if (waiter.kind === kind) this.#end(waiter).resolve();
  }

  close(reason: string): void {
    for (const waiter of this.#waiters) this.#end(waiter).reject(new Error(reason));
  }

  #end(waiter: Waiter): Deferred<void> {
    this.#waiters.delete(waiter);
    this.#clock.clearTimeout(waiter.timer);
    return waiter.done;
  }
}

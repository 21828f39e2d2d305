import type { Clock, TimerHandle } from "../base/clock";
import { deferred } from "../base/deferred";
import type { Collective, Problem } from "./collective";
import { CollectiveError, type Work } from "./work";

export interface OperationOptions {
  /** As sentences about it begin. */
  readonly title: string;
  readonly collective: Collective;
  readonly clock: Clock;
  readonly timeoutMilliseconds: number;
  /** How sentences call a rank. */
  readonly nameOf: (rank: number) => string;
  readonly send: (to: number, offset: number, payload: Uint8Array<ArrayBuffer>) => void;
  readonly drained: (to: number) => Promise<void>;
  /** Called once, when no more chunks are wanted. */
  readonly ended: (operation: Operation) => void;
  /** What more there is to say of a time-out. */
  readonly explain: ((operation: Operation) => Promise<string>) | null;
}

/** A collective under way on this member: its time-out, its end, and its failure. */
export class Operation implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  /** Why it failed, without its title; null while it hasn't. */
  reason: string | null = null;
  /** Whether another member said that it failed. */
  isToldByOthers = false;
  readonly startedAt: number;
  readonly #options: OperationOptions;
  readonly #settled = deferred<void>();
  /** To whom anything was sent. */
  readonly #destinations = new Set<number>();
  readonly #send: (to: number, offset: number, payload: Uint8Array<ArrayBuffer>) => void;
  #timer: TimerHandle | null = null;
  #lastProgress: number;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    this.startedAt = options.clock.now();
    this.#lastProgress = this.startedAt;
    this.#send = (to, offset, payload) => {
      this.#destinations.add(to);
      options.send(to, offset, payload);
    };
    // A failure is kept in `exception` too, so one that nobody waits for isn't an unhandled rejection.
    this.#settled.promise.catch(() => {});
  }

  get collective(): Collective {
    return this.#options.collective;
  }

  /** When the last chunk came, or else when it was started. */
  get lastProgress(): number {
    return this.#lastProgress;
  }

  get destinations(): ReadonlySet<number> {
    return this.#destinations;
  }

  wait(): Promise<void> {
    return this.#settled.promise;
  }

  start(): void {
    this.#watch(this.#options.timeoutMilliseconds);
    this.collective.start(this.#send);
    if (this.collective.done) this.#end();
  }

  receive(from: number, offset: number, payload: Uint8Array<ArrayBuffer>): Problem | null {
    const problem = this.collective.receive(from, offset, payload, this.#send);
    if (problem !== null) return problem;
    this.#lastProgress = this.#options.clock.now();
    if (this.collective.done) this.#end();
    return null;
  }

  abort(reason: string, isToldByOthers = false): void {
    if (this.#ended) return;
    this.reason = reason;
    this.isToldByOthers = isToldByOthers;
    this.exception = new CollectiveError(`${this.#options.title} failed. ${reason}`);
    this.#end();
  }

  /** No more chunks are wanted; settles when the views of the data that are still queued are sent. */
  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#timer !== null) this.#options.clock.clearTimeout(this.#timer);
    this.#options.ended(this);
    Promise.all([...this.#destinations].map((to) => this.#options.drained(to))).then(
      () => this.#settle(),
      // The link is gone: nothing of the data is queued any more.
      () => this.#settle(),
    );
  }

  #settle(): void {
    this.isCompleted = true;
    if (this.exception === null) this.#settled.resolve();
    else this.#settled.reject(this.exception);
  }

  #watch(milliseconds: number): void {
    const { clock, timeoutMilliseconds, nameOf, explain } = this.#options;
    this.#timer = clock.setTimeout(() => {
      const quiet = clock.now() - this.#lastProgress;
      if (quiet < timeoutMilliseconds) {
        // Rounded up: a clock may be too coarse for the rest of a millisecond.
        this.#watch(Math.ceil(timeoutMilliseconds - quiet));
        return;
      }
      const { waitingFor, received, total } = this.collective;
      const sentence = `Waited ${(quiet / 1000).toFixed(1)} s for ${waitingFor.map(nameOf).join(", ")}: ${received} of ${total} bytes have come.`;
      if (explain === null) this.abort(sentence);
      else void explain(this).then((more) => this.abort(`${sentence}${more}`));
    }, milliseconds);
  }
}

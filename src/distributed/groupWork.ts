import { messageOf } from "../base/messageOf";
import { CollectiveError, type Work } from "./work";

/** A Work made of several parts, one of which may be under way. */
export class GroupWork implements Work {
  exception: CollectiveError | null = null;
  isCompleted = false;
  readonly #result: Promise<void>;
  #part: Work | null = null;
  #aborted: string | null = null;

  /** @param title begins the sentence about a failure that isn't a part's. */
  constructor(title: string, body: (started: (part: Work) => Promise<void>) => Promise<void>) {
    this.#result = body((part) => {
      this.#part = part;
      if (this.#aborted !== null) part.abort(this.#aborted);
      return part.wait();
    }).then(
      () => {
        this.isCompleted = true;
      },
      (error: unknown) => {
        this.isCompleted = true;
        this.exception =
          error instanceof CollectiveError && error === this.#part?.exception
            ? error
            : new CollectiveError(`${title} failed. ${messageOf(error)}`, {
                cause: error,
              });
        throw this.exception;
      },
    );
    // A failure is kept in `exception` too, so one that nobody waits for isn't an unhandled rejection.
    this.#result.catch(() => {});
  }

  wait(): Promise<void> {
    return this.#result;
  }

  abort(reason: string): void {
    this.#aborted = reason;
    this.#part?.abort(reason);
  }
}

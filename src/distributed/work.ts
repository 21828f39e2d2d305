/** A collective that is under way. */
export interface Work {
  /**
   * Resolves when the result is there, rejects with a CollectiveError when it never will be. Either way the data belongs to the
   * caller again then: nothing of it is waiting to be sent any more.
   */
  wait(): Promise<void>;
  /** True once wait() has settled. */
  readonly isCompleted: boolean;
  /** Why it failed; null while under way and after success. */
  readonly exception: CollectiveError | null;
  /** Ends it here; the other members learn of it only by their time-outs or by being told. */
  abort(reason: string): void;
}

/** A collective failed: the message says which one, at which step, and because of whom. */
export class CollectiveError extends Error {
  override readonly name = "CollectiveError";
}

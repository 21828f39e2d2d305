/**
 * A collective's algorithm, seen from one member, as plain data: rounds of what it sends and of what comes.
 *
 * Within a round, what comes from one peer comes in the order listed; different peers are independent of each other. A round ends when all of
 * it has come, and then the next one's sends go out. Both sides of a transfer cut it into the same chunks, so what must come next from
 * a peer is always known exactly. Transfers are listed lazily, so that a ring of a thousand members costs no memory.
 */
export interface Schedule {
  /** As sentences name it; part of the operation's identity. */
  readonly algorithm: string;
  /** Whether several members compute the same elements of the result each on their own. */
  readonly isReplicated: boolean;
  rounds(): Iterable<Round>;
}

export interface Round {
  readonly sends: Iterable<Outgoing>;
  /** By the rank that they come from. */
  readonly lanes: ReadonlyMap<number, Iterable<Incoming>>;
}

/** Values are "partial" while not all ranks' are combined in them. */
export type Format = "partial" | "final";

export interface Outgoing {
  readonly to: number;
  /** Where it lies in the whole that both sides agree on, in elements. */
  readonly offset: number;
  readonly length: number;
  readonly format: Format;
  readonly source: "input" | "output";
  /** Where it begins in this member's input or output. */
  readonly at: number;
}

export interface Incoming {
  readonly offset: number;
  readonly length: number;
  readonly action: /** Final values: store them in the output. */
    | { readonly kind: "store"; readonly at: number }
    /** Final values for others: they are only passed on. */
    | { readonly kind: "pass" }
    /** Partial values: combine this member's input from `at` into them, and pass them on. */
    | { readonly kind: "combine"; readonly at: number }
    /** The same, and keep the result in place of this member's input. */
    | { readonly kind: "hold"; readonly at: number }
    /** Partial values: combine the input from `at` into them, finish them, and store them at `to` in the output. */
    | { readonly kind: "reduce"; readonly at: number; readonly to: number };
  /** Who gets each chunk as soon as it is handled. */
  readonly forward: readonly number[];
}

export const noTransfers: ReadonlyMap<number, Iterable<Incoming>> = new Map();

/** An empty message. */
export const signalTo = (to: number): Outgoing => ({
  to,
  offset: 0,
  length: 0,
  format: "final",
  source: "input",
  at: 0,
});

/** One algorithm after another, as one. */
export function inSequence(first: Schedule, second: Schedule): Schedule {
  return {
    algorithm: first.algorithm,
    isReplicated: first.isReplicated || second.isReplicated,
    *rounds() {
      yield* first.rounds();
      yield* second.rounds();
    },
  };
}

export function formatOf(incoming: Incoming): Format {
  switch (incoming.action.kind) {
    case "store":
    case "pass":
      return "final";
    case "combine":
    case "hold":
    case "reduce":
      return "partial";
  }
}

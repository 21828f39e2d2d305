import { OperatorError } from "./shape";
import type { Tensor } from "./tensor";

/**
 * A function whose intermediate values are not kept for the backward pass: when a gradient rule asks for one, the
 * function is recorded again. Every differentiable call in it has a number, by which it is found in the replay.
 */
export class Recomputation {
  /** The differentiable calls, in order: what each made. */
  readonly calls: string[] = [];
  /** The scalars of each random draw, in order. */
  readonly draws: (readonly number[])[] = [];
  /** Recomputations that began in this one. */
  readonly inner: Recomputation[] = [];
  private latest: Replay | null = null;

  constructor(
    private readonly run: () => unknown,
    /** The one it is in: only a replay of that has the inputs to replay this one. */
    private readonly outer: { readonly recomputation: Recomputation; readonly index: number } | null,
  ) {}

  /** What the function made when it was recorded again, in the recording that is open. */
  replay(): Replay {
    if (this.outer) return this.outer.recomputation.replay().inner[this.outer.index]!.replay();
    if (this.latest?.isCurrent) return this.latest;
    const replay = new Replay(this);
    within(replay, this.run);
    replay.checkComplete();
    this.latest = replay;
    return replay;
  }
}

/** A recomputation's function, recorded again. */
class Replay {
  /** By the calls' numbers. */
  readonly made: Tensor[] = [];
  readonly inner: Recomputation[] = [];
  private drawn = 0;

  constructor(readonly original: Recomputation) {}

  get isCurrent(): boolean {
    const source = this.made.at(-1)?.source;
    return source?.kind === "node" && !source.recording.flushed;
  }

  draw(): readonly number[] {
    return this.original.draws[this.drawn++] ?? differs("draws more random tensors");
  }

  add(tensor: Tensor, call: string): void {
    const expected = this.original.calls[this.made.length];
    if (call !== expected) differs(`computes ${call} where it computed ${expected ?? "nothing"}`);
    this.made.push(tensor);
  }

  checkComplete(): void {
    const { calls, inner } = this.original;
    if (this.made.length < calls.length) differs(`stops before ${calls[this.made.length]}`);
    if (this.inner.length !== inner.length)
      differs(`calls checkpoint ${this.inner.length} times where it called it ${inner.length} times`);
  }
}

function differs(how: string): never {
  throw new OperatorError(
    "checkpoint",
    `when it is run again for the backward pass, the function ${how}; expected the same operations as before. ` +
      "It must not depend on anything that changes in between",
  );
}

/** What runs at present, from the inside out. */
let running: { readonly what: Recomputation | Replay; readonly outer: typeof running } | null = null;

function within<T>(what: Recomputation | Replay, body: () => T): T {
  running = { what, outer: running };
  try {
    return body();
  } finally {
    running = running.outer;
  }
}

/** Runs `body` for the first time. Its differentiable calls will find their operands in what `run` records again. */
export function recomputed<T>(body: () => T, run: () => unknown): T {
  const around = running?.what;
  const isOriginal = around instanceof Recomputation;
  const recomputation = new Recomputation(
    run,
    isOriginal ? { recomputation: around, index: around.inner.length } : null,
  );
  around?.inner.push(recomputation);
  return within(recomputation, body);
}

/** Whether a function runs again whose changes in place were made before. */
export const isReplaying = (): boolean => running?.what instanceof Replay;

/** Notes a differentiable call in what runs; what it gives finds the call's tensor in a replay. */
export function noteCall(tensor: Tensor, operator: string): (() => Tensor) | null {
  if (!running) return null;
  const { what } = running;
  const call = `${operator} of ${tensor}`;
  if (what instanceof Replay) {
    what.add(tensor, call);
    return null;
  }
  const index = what.calls.push(call) - 1;
  return () => what.replay().made[index]!;
}

/** The scalars of a random draw: those that `fresh` gives, or, in a replay, those that were drawn before. */
export function repeatable(fresh: () => readonly number[]): readonly number[] {
  const recordings: Recomputation[] = [];
  let at = running;
  while (at && at.what instanceof Recomputation) {
    recordings.push(at.what);
    at = at.outer;
  }
  const scalars = at?.what instanceof Replay ? at.what.draw() : fresh();
  for (const { draws } of recordings) draws.push(scalars);
  return scalars;
}

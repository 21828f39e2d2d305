import { OperatorError } from "./shape";
import type { Storage } from "./storage";
import type { Tensor } from "./tensor";

/** Values that a compiled step takes anew at each call. `values` is the array that the step's nodes hold. */
export interface LiveScalars {
  readonly values: number[];
  readonly fresh: () => readonly number[];
}

/** Something outside of a traced function that decided what it recorded. */
export interface Guard {
  /** What it is, for a person. */
  readonly what: string;
  holds(): boolean;
}

/** What is found out about a function while it is recorded, so that the recording may be run again without it. */
export class Trace {
  readonly live: LiveScalars[] = [];
  /** Why the recording can't be run again. */
  refusal: Error | null = null;
  private readonly captured = new Map<Tensor, Guard>();
  /** Those that the captured tensors had. */
  private readonly gradients = new Map<Tensor, Tensor | null>();
  private readonly observations: Guard[] = [];

  /**
   * @param arguments_ tensors that other calls will put others in the place of.
   * @param firstTensor the `order` from which tensors are made by the function.
   */
  constructor(
    private readonly arguments_: ReadonlySet<Tensor>,
    private readonly firstTensor: number,
  ) {}

  get guards(): Guard[] {
    return [...this.captured.values(), ...this.observations];
  }

  /** Where the tensors from outside lie. */
  get capturedStorages(): Storage[] {
    return [...this.captured.keys()].flatMap((tensor) => storageNow(tensor) ?? []);
  }

  capture(tensor: Tensor): void {
    if (tensor.order >= this.firstTensor || this.captured.has(tensor) || this.arguments_.has(tensor)) return;
    const { requiresGrad, grad } = tensor;
    const storage = storageNow(tensor);
    this.gradients.set(tensor, grad);
    const holds = () => tensor.requiresGrad === requiresGrad && tensor.grad === grad && storageNow(tensor) === storage;
    this.captured.set(tensor, {
      what: `${tensor}, whether it requires a gradient and has one, and where it lies`,
      holds,
    });
  }

  /** Takes away the gradients that the function gave to tensors from outside. */
  restoreGradients(): void {
    for (const [tensor, grad] of this.gradients) tensor.grad = grad;
  }

  observe<T>(what: string, read: () => T): T {
    const value = read();
    this.observations.push({ what, holds: () => read() === value });
    return value;
  }
}

const storageNow = ({ source }: Tensor): Storage | null => (source.kind === "recipe" ? null : source.storage);

let tracing: Trace | null = null;

export const isTracing = (): boolean => tracing !== null;

/** Runs a function whose recording `trace` is about. */
export function traced<T>(trace: Trace, body: () => T): T {
  tracing = trace;
  try {
    return body();
  } finally {
    tracing = null;
  }
}

/** Notes that what is recorded depends on a tensor: where it lies, and on its gradient. */
export function noteUse(tensor: Tensor): void {
  tracing?.capture(tensor);
}

/**
 * Reads a setting outside of the graph that decides what is recorded, such as whether a module is in training. A
 * compiled step is recorded again when it changed.
 * @param what names it.
 */
export function observed<T>(what: string, read: () => T): T {
  return tracing ? tracing.observe(what, read) : read();
}

/**
 * Scalars that may change from step to step: a learning rate, a count, a random stream. `fresh` is called at once, and
 * again at each call of a compiled step, in the order in which the step recorded them.
 * @returns the scalars, to be handed on as they are.
 */
export function liveScalars(fresh: () => readonly number[]): readonly number[] {
  const values = [...fresh()];
  tracing?.live.push({ values, fresh });
  return values;
}

/** Throws within a compiled step: what it does can't be recorded. */
export function refuseInTrace(what: string, advice: string): void {
  if (!tracing) return;
  const refusal = new OperatorError("compile", `the step ${what}, which can't be recorded and run again. ${advice}`);
  tracing.refusal ??= refusal;
  throw refusal;
}

import { type RandomOptions, randAnew, type Shape, type Tensor } from "../tensor/index";

/** What the random numbers of a training step follow from. */
export interface StepDraws {
  readonly seed: number;
  readonly step: number;
  /** The place of the batch's first row in the global batch. */
  readonly firstRow: number;
}

let current: { readonly draws: StepDraws; layer: number } | null = null;

/**
 * Runs `body`, a forward pass, whose layers draw by the seed, the step, their order in the pass and the place in the
 * global batch: whoever computes a row draws the same numbers for it. Seed, step and row may change without a new plan.
 */
export function withDraws<T>(draws: StepDraws, body: () => T): T {
  const before = current;
  current = { draws, layer: 0 };
  try {
    return body();
  } finally {
    current = before;
  }
}

/** Uniform numbers in [0, 1) for a tensor whose first dimension is the batch's; outside of `withDraws` by `manualSeed`. */
export function drawUniform(shape: Shape): Tensor {
  const perRow = shape.slice(1).reduce((product, size) => product * size, 1);
  return randAnew(shape, (): RandomOptions => {
    if (!current) return {};
    const { seed, step, firstRow } = current.draws;
    return { seed, stream: [current.layer++, step], first: firstRow * perRow };
  });
}

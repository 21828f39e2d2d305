import { copy_, FlatParameters, noGrad, type Tensor, type UpdateFormula, update_, zeros } from "../tensor/index";

const formula: UpdateFormula = { name: "movingAverage", statements: "t0 = t0 + s0 * (t1 - t0);" };

/**
 * An exponential moving average of weights, to evaluate or keep a model by: average = decay average + (1 - decay)
 * weight at each `update()`, the first of which takes the weights as they are.
 */
export class MovingAverage {
  readonly #weights: readonly Tensor[];
  readonly #averages: readonly Tensor[];
  #updates = 0;

  /** @param parameters tensors, or flat parameters, which take one kernel. */
  constructor(
    parameters: Iterable<Tensor> | FlatParameters,
    readonly decay = 0.999,
  ) {
    this.#weights = parameters instanceof FlatParameters ? [parameters.weights] : [...parameters];
    this.#averages = this.#weights.map(({ shape }) => zeros(shape));
  }

  /** The averages, each in the shape of its tensor. */
  get averages(): readonly Tensor[] {
    return this.#averages;
  }

  /** Takes in the weights as they are after everything recorded so far. */
  update(): void {
    const part = this.#updates === 0 ? 1 : 1 - this.decay;
    this.#updates += 1;
    for (const [index, weights] of this.#weights.entries()) {
      const average = this.#averages[index];
      if (average) update_(formula, [average], [weights], [part]);
    }
  }

  /** Puts the averages in the weights' place, runs `body`, and puts the weights back. */
  async during<T>(body: () => T | Promise<T>): Promise<T> {
    const before = this.#weights.map((weights) => zeros(weights.shape));
    const put = (to: readonly Tensor[], from: readonly Tensor[]) =>
      noGrad(() => {
        for (const [index, target] of to.entries()) {
          const value = from[index];
          if (value) copy_(target, value);
        }
      });
    put(before, this.#weights);
    put(this.#weights, this.#averages);
    try {
      return await body();
    } finally {
      put(this.#weights, before);
    }
  }
}

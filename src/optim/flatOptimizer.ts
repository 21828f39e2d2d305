import { type FlatParameters, narrow, type Tensor } from "../tensor/index";
import type { OptimizerSpec } from "./spec";
import { TensorUpdate, UpdateKernel } from "./tensorUpdate";

/**
 * An optimizer on the GPU, over all of a model's parameters in one kernel. Its state has the layout of the offloaded
 * optimizer's, so that training can move from one to the other.
 */
export class FlatOptimizer {
  readonly #update: TensorUpdate;

  constructor(
    readonly spec: OptimizerSpec,
    readonly flat: FlatParameters,
  ) {
    this.#update = new TensorUpdate(new UpdateKernel(spec), flat.weights);
  }

  /** How many steps were taken, those of a state that was written included. */
  get steps(): number {
    return this.#update.steps;
  }

  /**
   * Records one step, which changes the weights in place at the next flush.
   * @param learningRate a function is asked again at each call of a compiled step.
   * @param gate one element, known on the GPU only: where it is 0, weights and state stay as they are, and `takeBack`
   * is to follow once that is known.
   */
  step(learningRate: number | (() => number) = this.spec.learningRate, gate: Tensor | null = null): void {
    const rate = typeof learningRate === "number" ? () => learningRate : learningRate;
    const gradients = narrow(this.flat.gradients, 0, 0, this.flat.layout.length);
    this.#update.step(gradients, () => ({ learningRate: rate() }), gate);
  }

  /** Takes back the count of a step whose gate was closed. */
  takeBack(): void {
    this.#update.steps -= 1;
  }

  /** The arrays of state in the order of `stateLayout`, each of layout.length values. */
  readState(): Promise<Float32Array<ArrayBuffer>[]> {
    return this.#update.readState();
  }

  /** Takes over a state of the same layout and the number of steps that led to it. */
  writeState(state: readonly Float32Array[], steps: number): void {
    this.#update.writeState(state, steps);
  }
}

import { liveScalars, type Tensor, tensor, type UpdateFormula, update_ } from "../tensor/index";
import type { UpdateRule } from "./rules/rule";
import type { OptimizerSpec } from "./spec";
import { checkState, updateRule } from "./updateRule";
import { wgslFormula } from "./wgslUpdate";

/** An optimizer's kernel: the formula of a specification, ready for any tensor. */
export class UpdateKernel {
  readonly rule: UpdateRule;
  readonly formula: UpdateFormula;
  readonly #scalars: readonly ((step: number, learningRate: number) => number)[];

  constructor(readonly spec: OptimizerSpec) {
    this.rule = updateRule(spec);
    this.formula = wgslFormula(spec.name, this.rule);
    this.#scalars = Object.values(this.rule.scalars);
  }

  scalars(step: number, learningRate: number): number[] {
    return this.#scalars.map((value) => value(step, learningRate));
  }
}

/** One tensor of weights with its optimizer's state on the GPU. */
export class TensorUpdate {
  steps = 0;
  readonly #state: readonly Tensor[];

  constructor(
    readonly kernel: UpdateKernel,
    readonly weights: Tensor,
  ) {
    this.#state = kernel.rule.state.map(() => tensor(new Float32Array(weights.numel)));
  }

  /**
   * Records one step against `gradients`, of as many elements as the weights.
   * @param learningRate is asked at each call of a compiled step.
   * @param gate one element: where it is 0 on the GPU, weights and state stay as they are. The step counts all the same.
   */
  step(gradients: Tensor, learningRate: () => number, gate: Tensor | null = null): void {
    const { formula } = this.kernel;
    const scalars = liveScalars(() => {
      this.steps += 1;
      return this.kernel.scalars(this.steps, learningRate());
    });
    update_(formula, [this.weights, ...this.#state], [gradients], scalars, gate);
  }

  /** The arrays of state in the order of `stateLayout`. */
  async readState(): Promise<Float32Array<ArrayBuffer>[]> {
    const arrays = await Promise.all(this.#state.map((array) => array.data()));
    return arrays.map((array) => Float32Array.from(array));
  }

  writeState(state: readonly Float32Array[], steps: number): void {
    checkState(this.kernel.spec, this.weights.numel, state, steps);
    state.forEach((array, index) => void this.#state[index]?.write(array));
    this.steps = steps;
  }
}

import { liveScalars, type Tensor, tensor, type UpdateFormula, update_ } from "../tensor/index";
import type { RuleScalar, UpdateRule } from "./rules/rule";
import { momentumOf, type OptimizerSpec } from "./spec";
import { checkState, stateLayout, updateRule } from "./updateRule";
import { wgslFormula } from "./wgslUpdate";

/** An optimizer's kernel: the formula of a specification, ready for any tensor. */
export class UpdateKernel {
  readonly rule: UpdateRule;
  readonly formula: UpdateFormula;
  readonly #scalars: readonly RuleScalar[];

  constructor(readonly spec: OptimizerSpec) {
    this.rule = updateRule(spec);
    this.formula = wgslFormula(spec.name, this.rule);
    this.#scalars = Object.values(this.rule.scalars);
  }

  scalars(step: number, learningRate: number, momentum: number): number[] {
    return this.#scalars.map((value) => value(step, learningRate, momentum));
  }
}

/** What a schedule may change between steps: asked again at each call of a compiled step. */
export interface StepSettings {
  readonly learningRate: number;
  /** The specification's, if it is left out (`momentumOf`). */
  readonly momentum?: number | undefined;
}

/** One tensor of weights with its optimizer's state on the GPU. */
export interface ParameterUpdate {
  readonly weights: Tensor;
  steps: number;
  /**
   * Records one step against `gradients`, of as many elements as the weights.
   * @param gate one element: where it is 0 on the GPU, weights and state stay as they are. The step counts all the same.
   */
  step(gradients: Tensor, settings: () => StepSettings, gate?: Tensor | null): void;
  /** The arrays of state, in an order of their own. */
  readState(): Promise<Float32Array<ArrayBuffer>[]>;
  /** Takes over such a state, and the number of steps that led to it. */
  writeState(state: readonly Float32Array[], steps: number): void;
}

/** An update by a formula that takes each weight for itself. The arrays of state are in the order of `stateLayout`. */
export class TensorUpdate implements ParameterUpdate {
  steps = 0;
  readonly #state: readonly Tensor[];

  constructor(
    readonly kernel: UpdateKernel,
    readonly weights: Tensor,
  ) {
    this.#state = kernel.rule.state.map(() => tensor(new Float32Array(weights.numel)));
  }

  step(gradients: Tensor, settings: () => StepSettings, gate: Tensor | null = null): void {
    const { formula, spec } = this.kernel;
    const scalars = liveScalars(() => {
      const { learningRate, momentum = momentumOf(spec) ?? 0 } = settings();
      this.steps += 1;
      return this.kernel.scalars(this.steps, learningRate, momentum);
    });
    update_(formula, [this.weights, ...this.#state], [gradients], scalars, gate);
  }

  readState(): Promise<Float32Array<ArrayBuffer>[]> {
    return readAll(this.#state);
  }

  writeState(state: readonly Float32Array[], steps: number): void {
    const { spec } = this.kernel;
    checkState(spec.name, stateLayout(spec, this.weights.numel), state, steps);
    state.forEach((array, index) => void this.#state[index]?.write(array));
    this.steps = steps;
  }
}

export async function readAll(tensors: readonly Tensor[]): Promise<Float32Array<ArrayBuffer>[]> {
  const arrays = await Promise.all(tensors.map((array) => array.data()));
  return arrays.map((array) => Float32Array.from(array));
}

import type { RuleScalar } from "./rules/rule";
import { momentumOf, type OptimizerSpec } from "./spec";
import { checkState, stateLayout, updateRule } from "./updateRule";
import { compileUpdate, type WasmUpdate } from "./wasmUpdate";

/** Weights and gradients pass through WASM's memory in blocks of so many values, small enough for a CPU's cache. */
const blockLength = 8192;
const pageBytes = 65536;

/**
 * An optimizer on the CPU, over flat float32 arrays. It computes the same bits in every browser and on every processor,
 * so replicas that reduce the same gradients keep the same weights.
 */
export class OffloadedOptimizer {
  readonly #scalars: readonly RuleScalar[];
  readonly #momentum: number;
  readonly #weights: Float32Array;
  readonly #gradients: Float32Array;
  readonly #state: readonly Float32Array[];
  readonly #update: WasmUpdate;
  readonly #arguments: number[];
  #steps = 0;

  /** @param length how many weights there are; `step` takes arrays of at least this length. */
  constructor(
    readonly spec: OptimizerSpec,
    readonly length: number,
  ) {
    const rule = updateRule(spec);
    const paddedLength = Math.ceil(length / 4) * 4;
    const bytes = 4 * (2 * blockLength + rule.state.length * paddedLength);
    const memory = allocate(spec, length, bytes);
    let offset = 0;
    const take = (count: number, padded: number) => {
      const array = new Float32Array(memory.buffer, offset, count);
      offset += 4 * padded;
      return array;
    };
    this.#weights = take(blockLength, blockLength);
    this.#gradients = take(blockLength, blockLength);
    this.#state = rule.state.map(() => take(length, paddedLength));
    this.#scalars = Object.values(rule.scalars);
    this.#momentum = momentumOf(spec) ?? 0;
    this.#update = compileUpdate(rule, memory);
    this.#arguments = new Array<number>(3 + this.#state.length + this.#scalars.length).fill(0);
  }

  /**
   * Takes one step in place: `weights` move against `gradients`, both of at least `length` values (further ones, such as
   * a bucket's sums of metrics, are left alone).
   */
  step(weights: Float32Array, gradients: Float32Array, learningRate: number = this.spec.learningRate): void {
    if (weights.length < this.length || gradients.length < this.length)
      throw new Error(
        `The optimizer ${this.spec.name} was made for ${this.length} weights; it was given ${weights.length} weights ` +
          `and ${gradients.length} gradients.`,
      );
    this.#steps += 1;
    const values = this.#arguments;
    const arrays = 2 + this.#state.length;
    for (let index = 0; index < this.#scalars.length; index++)
      values[arrays + 1 + index] = this.#scalars[index]?.(this.#steps, learningRate, this.#momentum) ?? 0;
    for (let start = 0; start < this.length; start += blockLength) {
      const count = Math.min(blockLength, this.length - start);
      this.#weights.set(weights.subarray(start, start + count));
      this.#gradients.set(gradients.subarray(start, start + count));
      values[0] = this.#weights.byteOffset;
      values[1] = this.#gradients.byteOffset;
      for (let index = 0; index < this.#state.length; index++)
        values[2 + index] = (this.#state[index]?.byteOffset ?? 0) + 4 * start;
      values[arrays] = this.#weights.byteOffset + 4 * count;
      this.#update(...values);
      weights.set(count === blockLength ? this.#weights : this.#weights.subarray(0, count), start);
    }
  }

  /** How many steps were taken, those of a state that was loaded included. */
  get steps(): number {
    return this.#steps;
  }

  /** The state as `stateLayout` orders it: views of the optimizer's own memory, to be copied before they are sent. */
  state(): readonly Float32Array[] {
    return this.#state;
  }

  /** Takes over a state of the same layout, from another optimizer of the same kind or from the GPU's. */
  loadState(state: readonly Float32Array[], steps: number): void {
    checkState(this.spec.name, stateLayout(this.spec, this.length), state, steps);
    state.forEach((array, index) => void this.#state[index]?.set(array));
    this.#steps = steps;
  }
}

function allocate(spec: OptimizerSpec, length: number, bytes: number): WebAssembly.Memory {
  const pages = Math.ceil(bytes / pageBytes);
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages });
  } catch (cause) {
    throw new Error(
      `The optimizer ${spec.name} needs ${Math.ceil(bytes / 1e6)} MB for ${length} weights, which isn't to be had.`,
      { cause },
    );
  }
}

import { OffloadedOptimizer, type OptimizerSpec, stateLayout } from "../optim";
import type { ProcessGroup } from "./processGroup";
import { CollectiveError } from "./work";

/** The whole optimizer's state: `arrays` as stateLayout orders them, each of as many values as there are weights. */
export interface WholeOptimizerState {
  readonly steps: number;
  readonly arrays: readonly Float32Array[];
}

/** Parts begin at multiples of so many values. */
const alignment = 64;

/** A part of the weights with its optimizer, and both as they were a step before. */
interface Shard {
  /** Which part of the weights it is. */
  readonly part: number;
  readonly optimizer: OffloadedOptimizer;
  readonly previousWeights: Float32Array<ArrayBuffer>;
  readonly previousState: readonly Float32Array<ArrayBuffer>[];
}

/**
 * Weights whose optimizer's state is divided among ranks. Rank `r` owns part `r` of equal parts; it also mirrors the part of the rank before it,
 * by taking the same steps on the same gradients: so that any one rank's loss takes no state with it. On the CPU alone.
 */
export class OptimizerShards {
  /** All weights, and zeros up to a whole number of parts. */
  #weights: Float32Array<ArrayBuffer>;
  #group: ProcessGroup;
  /** The part that this rank owns, then the one that it mirrors. */
  #shards: readonly Shard[];
  #partLength: number;
  /** This rank's part of the reduced gradients, and the mirrored one. */
  #gradients: readonly Float32Array<ArrayBuffer>[];

  /** @param weights the same on all ranks. */
  constructor(
    readonly spec: OptimizerSpec,
    weights: Float32Array,
    group: ProcessGroup,
    readonly mirrored: boolean,
  ) {
    this.length = weights.length;
    this.#group = group;
    const made = this.#divide();
    this.#partLength = made.partLength;
    this.#shards = made.shards;
    this.#gradients = made.gradients;
    this.#weights = new Float32Array(made.partLength * group.worldSize);
    this.#weights.set(weights);
  }

  /** The number of weights. */
  readonly length: number;

  get group(): ProcessGroup {
    return this.#group;
  }

  /** Steps that this rank has taken. */
  get steps(): number {
    return this.#shards[0]!.optimizer.steps;
  }

  get weights(): Float32Array<ArrayBuffer> {
    return this.#weights.subarray(0, this.length);
  }

  /** Values of optimizer state that this rank holds, its mirror included. */
  get stateLength(): number {
    return this.#shards.reduce(
      (sum, { optimizer }) => sum + optimizer.state().reduce((all, { length }) => all + length, 0),
      0,
    );
  }

  /** What `step` takes: an array for this rank's gradients, of which the first `length` values count. */
  makeGradients(): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#partLength * this.#group.worldSize);
  }

  /**
   * Takes a step along the sum of all ranks' gradients, which have come from `makeGradients`. Weights travel in the place of gradients, so it moves the
   * bytes of an all-reduce, and those of a part more for the mirror.
   * @throws CollectiveError when a rank is lost on the way; `reform` puts those left in order.
   */
  async step(gradients: Float32Array<ArrayBuffer>, learningRate: number): Promise<void> {
    const group = this.#group;
    const [own, mirror] = this.#gradients;
    await group.reduceScatterTensor(own!, gradients).wait();
    if (mirror) {
      const { rank, worldSize } = group;
      const received = group.recv(mirror, (rank + worldSize - 1) % worldSize);
      const sent = group.send(own!, (rank + 1) % worldSize);
      await Promise.all([received.wait(), sent.wait()]);
    }
    for (const [i, { part, optimizer, previousWeights, previousState }] of this.#shards.entries()) {
      const weights = this.#weightsOf(part);
      previousWeights.set(weights);
      for (const [k, array] of optimizer.state().entries()) previousState[k]!.set(array);
      optimizer.step(weights, this.#gradients[i]!, learningRate);
    }
    await group.allGatherIntoTensor(this.#weights, this.#weightsOf(group.rank).slice()).wait();
  }

  /**
   * Goes on with those ranks that are left, all of which call this. One that is a step ahead of others goes back by it: `steps` says where all
   * are.
   * @param group the ranks that are left.
   * @param formerRanks which rank each of them was, by its new one.
   * @throws CollectiveError on all where the state of a part is lost.
   */
  async reform(group: ProcessGroup, formerRanks: readonly number[]): Promise<void> {
    const former = { worldSize: this.#group.worldSize, partLength: this.#partLength, shards: this.#shards };
    const least = Int32Array.of(this.steps);
    await group.allReduce(least, "min").wait();
    const target = least[0]!;
    if (this.steps > target) this.#goBack();
    const names = stateLayout(this.spec, this.length);
    const weights = new Float32Array(former.worldSize * former.partLength);
    const state = names.map(() => new Float32Array(weights.length));
    for (let part = 0; part < former.worldSize; part += 1) {
      const holder = [part, this.mirrored ? (part + 1) % former.worldSize : part].find((rank) =>
        formerRanks.includes(rank),
      );
      if (holder === undefined)
        throw new CollectiveError(
          `ZeroRedundancyOptimizer: the state of part ${part} is lost with rank ${part}${
            this.mirrored ? ` and rank ${(part + 1) % former.worldSize}, which mirrored it` : "; mirror was false"
          }. Go on from a checkpoint.`,
        );
      const shard = formerRanks[group.rank] === holder ? former.shards.find((one) => one.part === part) : undefined;
      const range = [part * former.partLength, (part + 1) * former.partLength] as const;
      if (shard) {
        weights.set(this.#weightsOf(part), range[0]);
        for (const [k, array] of shard.optimizer.state().entries()) state[k]!.set(array, range[0]);
      }
      for (const values of [weights, ...state])
        await group.broadcast(values.subarray(...range), formerRanks.indexOf(holder)).wait();
    }
    this.#group = group;
    this.#take(weights.subarray(0, this.length), {
      steps: target,
      arrays: state.map((array) => array.subarray(0, this.length)),
    });
  }

  /** The whole state; all ranks call this. */
  async wholeState(): Promise<WholeOptimizerState> {
    const arrays: Float32Array[] = [];
    for (const array of this.#shards[0]!.optimizer.state()) {
      const whole = this.makeGradients();
      await this.#group.allGatherIntoTensor(whole, Float32Array.from(array)).wait();
      arrays.push(whole.subarray(0, this.length));
    }
    return { steps: this.steps, arrays };
  }

  /** Takes over weights and a whole state, the same on all ranks. */
  load(weights: Float32Array, state: WholeOptimizerState): void {
    const fits = stateLayout(this.spec, this.length).every(({ length }, k) => state.arrays[k]?.length === length);
    if (!fits || weights.length !== this.length)
      throw new Error(
        `ZeroRedundancyOptimizer: the state is of other weights than these ${this.length}, or of another optimizer than ${this.spec.name}.`,
      );
    this.#take(weights, state);
  }

  #take(weights: Float32Array, { steps, arrays }: WholeOptimizerState): void {
    const made = this.#divide();
    this.#partLength = made.partLength;
    this.#shards = made.shards;
    this.#gradients = made.gradients;
    this.#weights = this.makeGradients();
    this.#weights.set(weights);
    for (const { part, optimizer } of made.shards) {
      const own = arrays.map((array) => {
        const padded = new Float32Array(made.partLength);
        padded.set(array.subarray(part * made.partLength, (part + 1) * made.partLength));
        return padded;
      });
      optimizer.loadState(own, steps);
    }
  }

  #divide() {
    const { worldSize, rank } = this.#group;
    const partLength = Math.max(1, Math.ceil(this.length / worldSize / alignment)) * alignment;
    const parts = this.mirrored && worldSize > 1 ? [rank, (rank + worldSize - 1) % worldSize] : [rank];
    const shards = parts.map((part): Shard => {
      const optimizer = new OffloadedOptimizer(this.spec, partLength);
      return {
        part,
        optimizer,
        previousWeights: new Float32Array(partLength),
        previousState: optimizer.state().map(({ length }) => new Float32Array(length)),
      };
    });
    return { partLength, shards, gradients: parts.map(() => new Float32Array(partLength)) };
  }

  #goBack(): void {
    for (const { part, optimizer, previousWeights, previousState } of this.#shards) {
      this.#weightsOf(part).set(previousWeights);
      optimizer.loadState(previousState, optimizer.steps - 1);
    }
  }

  #weightsOf(part: number): Float32Array<ArrayBuffer> {
    return this.#weights.subarray(part * this.#partLength, (part + 1) * this.#partLength);
  }
}

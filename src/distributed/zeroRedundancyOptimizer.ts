import type { OptimizerSpec } from "../optim";
import { readAsComputed, type Tensor, zeroGradients } from "../tensor";
import type { DistributedDataParallel } from "./distributedDataParallel";
import type { ProcessGroup } from "./processGroup";
import { OptimizerShards, type WholeOptimizerState } from "./zeroRedundancyOptimizerShards";

export interface ZeroRedundancyOptions {
  /** Whether each rank mirrors the part of the one before it, so that one rank's loss takes no state with it. Default: true. */
  readonly mirror?: boolean;
}

export interface ZeroRedundancyStepOptions {
  /** How many samples this rank's gradients are the mean over; all ranks must say so or none. Default: ranks count the same. */
  readonly samples?: number;
}

/**
 * An optimizer whose state is divided among ranks, as torch's ZeroRedundancyOptimizer (ZeRO, stage 1: Rajbhandari et al. 2020). Each rank gets its
 * part of the averaged gradients, updates its part of the weights on the CPU, and all gather the new weights: the bytes of an all-reduce, and 1/N of
 * the state (2/N with the mirror). `step` takes the place of averageGradients() and the optimizer's step:
 *
 *     const model = await DistributedDataParallel.create(new Net());
 *     const optimizer = new ZeroRedundancyOptimizer(model, optim.adam({ learningRate: 1e-3 }));
 *     optimizer.zeroGrad();
 *     criterion.forward(model.forward(x), y).backward();
 *     await optimizer.step();
 */
export class ZeroRedundancyOptimizer {
  /** One group, of all trainable parameters; a schedule sets its learning rate. */
  readonly groups: readonly [
    { readonly parameters: readonly Tensor[]; readonly spec: OptimizerSpec; learningRate: number },
  ];
  readonly #model: DistributedDataParallel;
  readonly #mirror: boolean;
  /** Made at the first step, from the weights that the model has then. */
  #shards: OptimizerShards | null = null;
  #gradients: Float32Array<ArrayBuffer> = new Float32Array(0);

  constructor(model: DistributedDataParallel, spec: OptimizerSpec, { mirror = true }: ZeroRedundancyOptions = {}) {
    this.#model = model;
    this.#mirror = mirror;
    const parameters = model.parameters().filter(({ requiresGrad }) => requiresGrad);
    this.groups = [{ parameters, spec, learningRate: spec.learningRate }];
  }

  /** Steps taken so far. After a loss and `reform` it may be one less than before: that step is to be taken again. */
  get steps(): number {
    return this.#shards?.steps ?? 0;
  }

  /** Float32 values of state that this rank holds. */
  get stateLength(): number {
    return this.#shards?.stateLength ?? 0;
  }

  /** Sets the gradients to zero, in the memory they have. */
  zeroGrad(): void {
    zeroGradients(this.groups[0].parameters);
  }

  /**
   * Averages the gradients of all ranks and takes a step.
   * @throws CollectiveError when a rank is lost; `reform` puts those left in order.
   */
  async step({ samples }: ZeroRedundancyStepOptions = {}): Promise<void> {
    const shards = await this.#ready();
    const { flat } = this.#model;
    const { group } = shards;
    const gradients = this.#gradients;
    const count = flat.layout.length;
    const read = readAsComputed([{ tensor: flat.gradientRange(0, count), into: gradients.subarray(0, count) }]);
    const all = Float32Array.of(samples ?? 0, samples === undefined ? 0 : 1);
    await Promise.all([...read, group.allReduce(all).wait()]);
    const [total, said] = all;
    if (said !== 0 && said !== group.worldSize)
      throw new Error(
        `ZeroRedundancyOptimizer: ${said} of ${group.worldSize} ranks said how many samples their gradients are of; all must, or none.`,
      );
    const weight = said === 0 ? 1 / group.worldSize : total === 0 ? 0 : (samples ?? 0) / total!;
    for (let i = 0; i < count; i += 1) gradients[i] = gradients[i]! * weight;
    await shards.step(gradients, this.groups[0].learningRate);
    flat.writeWeights(shards.weights);
  }

  /**
   * Goes on with the ranks that are left after a loss, all of which call this.
   * @param formerRanks which rank each of them was, by its new one. Default: its rank in the world, for a group made by newGroup.
   * @throws CollectiveError on all where state is lost: with two neighbours at once, or without a mirror.
   */
  async reform(group: ProcessGroup, formerRanks: readonly number[] = group.ranks): Promise<void> {
    const shards = await this.#ready();
    await shards.reform(group, formerRanks);
    this.#model.moveTo(group);
    this.#gradients = shards.makeGradients();
    this.#model.flat.writeWeights(shards.weights);
  }

  /** The whole state, for a checkpoint, in the layout of the model's flat parameters. All ranks call this. */
  async stateDict(): Promise<WholeOptimizerState> {
    return (await this.#ready()).wholeState();
  }

  /** Takes over the weights that the model has and a whole state. All ranks call this with the same. */
  async loadStateDict(state: WholeOptimizerState): Promise<void> {
    const shards = await this.#ready();
    shards.load(await this.#model.flat.readWeights(), state);
    this.#gradients = shards.makeGradients();
  }

  async #ready(): Promise<OptimizerShards> {
    if (this.#shards === null) {
      const { flat, group } = this.#model;
      this.#shards = new OptimizerShards(this.groups[0].spec, await flat.readWeights(), group, this.#mirror);
      this.#gradients = this.#shards.makeGradients();
    }
    return this.#shards;
  }
}

import { BatchNorm1d, BatchNorm2d, type BatchNormLayerOptions, Module } from "../nn";
import {
  add,
  batchNorm,
  cat,
  copy_,
  div,
  full,
  mul,
  narrow,
  noGrad,
  OperatorError,
  reciprocal,
  reshape,
  rsqrt,
  sub,
  sum,
  type Tensor,
  tensor,
} from "../tensor";
import { getProcessGroup } from "./defaultGroup";
import type { ProcessGroup } from "./processGroup";
import { sumOverRanks } from "./syncBatchNormGather";

/** By group: one of the same ranks, which only the moments use, so that their order among other collectives doesn't matter. */
const momentGroups = new WeakMap<ProcessGroup, ProcessGroup>();

function momentGroupOf(group: ProcessGroup): ProcessGroup {
  const isWorld = group.ranks.every((rank, index) => rank === index);
  if (!isWorld || group.worldSize === 1) return group;
  const known = momentGroups.get(group);
  if (known !== undefined) return known;
  const made = group.newGroup(group.ranks);
  if (made === null) throw new Error("SyncBatchNorm: this rank isn't in its own group.");
  momentGroups.set(group, made);
  return made;
}

/**
 * Batch norm over [N, C] or [N, C, ...] whose moments in training are those of all ranks' batches together, as torch's SyncBatchNorm; shares may differ,
 * or be empty. All ranks make theirs in the same order, and run them equally often.
 *
 * Its gradient is that of the sum of all ranks' losses. Averaged over ranks, that is the mean of the losses; for the mean over samples with unequal
 * shares, let each rank's loss be its sum times worldSize / globalBatch, rather than pass `samples` to averageGradients.
 */
export class SyncBatchNorm extends Module {
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly runningMean: Tensor | null;
  readonly runningVar: Tensor | null;
  /** int32 []: how many batches the running moments come from. */
  readonly numBatchesTracked: Tensor | null;
  readonly #group: ProcessGroup;

  /** @param processGroup the group of initProcessGroup by default; a part of the world must be a group that nothing else uses. */
  constructor(
    readonly numFeatures: number,
    readonly options: BatchNormLayerOptions = {},
    processGroup: ProcessGroup = getProcessGroup(),
  ) {
    super();
    // The parameters and buffers are those of batch norm without ranks.
    const { weight, bias, runningMean, runningVar, numBatchesTracked } = new BatchNorm2d(numFeatures, options);
    this.weight = weight;
    this.bias = bias;
    this.runningMean = runningMean;
    this.runningVar = runningVar;
    this.numBatchesTracked = numBatchesTracked;
    this.#group = momentGroupOf(processGroup);
  }

  forward(input: Tensor): Tensor {
    const { numFeatures, runningMean, runningVar, numBatchesTracked: tracked, weight, bias } = this;
    const { eps = 1e-5, momentum = 0.1 } = this.options;
    if (input.ndim < 2 || input.shape[1] !== numFeatures)
      throw new OperatorError(
        "SyncBatchNorm",
        `the input has the shape [${input.shape.join(", ")}]; expected [N, ${numFeatures}, ...]`,
      );
    if (!this.training && tracked) return batchNorm(input, runningMean, runningVar, { weight, bias, eps });
    const { center, spread, count } = this.#moments(input);
    if (this.training && tracked && runningMean && runningVar)
      noGrad(() => {
        copy_(tracked, add(tracked, 1));
        const part = momentum ?? reciprocal(tracked);
        const unbiased = mul(spread, div(count, sub(count, 1)));
        copy_(runningMean, add(runningMean, mul(sub(center, runningMean), part)));
        copy_(runningVar, add(runningVar, mul(sub(unbiased, runningVar), part)));
      });
    const forChannels = (of: Tensor) => reshape(of, [1, numFeatures, ...input.shape.slice(2).map(() => 1)]);
    const factor = rsqrt(add(spread, eps));
    const scale = weight ? mul(factor, weight) : factor;
    const scaled = mul(sub(input, forChannels(center)), forChannels(scale));
    return bias ? add(scaled, forChannels(bias)) : scaled;
  }

  /**
   * Mean and biased variance of each channel over all ranks, [C], and the number of values, [1]. Every rank gives its own mean, sum of squared
   * deviations and count; they are joined as Chan, Golub and LeVeque (1983) do, without cancellation.
   */
  #moments(input: Tensor): { readonly center: Tensor; readonly spread: Tensor; readonly count: Tensor } {
    const { worldSize, rank } = this.#group;
    const channels = this.numFeatures;
    const own = input.numel / channels;
    const dims = input.shape.map((_, dim) => dim).filter((dim) => dim !== 1);
    // Also without a sample these depend on the input: all ranks' backward passes run the same collectives.
    const center = div(sum(input, dims, true), Math.max(1, own));
    const deviation = sub(input, center);
    const squares = sum(mul(deviation, deviation), dims);
    const row = cat([reshape(center, [channels]), squares, full([1], own)], 0);
    // The others' rows are zero here, so that the sum has each rank's own.
    const isOwn = tensor(Array.from({ length: worldSize }, (_, index) => [index === rank ? 1 : 0]));
    const rows = sumOverRanks(mul(isOwn, reshape(row, [1, 2 * channels + 1])), this.#group);
    const [centers, within, counts] = [
      narrow(rows, 1, 0, channels),
      narrow(rows, 1, channels, channels),
      narrow(rows, 1, 2 * channels, 1),
    ];
    const count = sum(counts, 0);
    const joined = div(sum(mul(centers, counts), 0), count);
    const offset = sub(centers, reshape(joined, [1, channels]));
    const between = sum(mul(mul(offset, offset), counts), 0);
    return { center: joined, spread: div(add(sum(within, 0), between), count), count };
  }
}

/**
 * Replaces every BatchNorm1d and BatchNorm2d in a module, or the module itself, by a SyncBatchNorm with the same parameters and buffers, as
 * torch.nn.SyncBatchNorm.convert_sync_batchnorm. Call it before the model is wrapped and before an optimizer is made.
 */
export function convertSyncBatchNorm<M extends Module>(
  module: M,
  processGroup: ProcessGroup = getProcessGroup(),
): M | SyncBatchNorm {
  if (module instanceof BatchNorm1d || module instanceof BatchNorm2d) return converted(module, processGroup);
  replaceWithin(module, processGroup);
  return module;
}

/** Modules lie in properties, and in lists and maps that are properties. */
function replaceWithin(owner: object, processGroup: ProcessGroup): void {
  if (owner instanceof Map) {
    for (const [key, value] of owner) {
      const replaced = replacement(value, processGroup);
      if (replaced !== value) owner.set(key, replaced);
    }
    return;
  }
  for (const [key, value] of Object.entries(owner)) {
    const replaced = replacement(value, processGroup);
    if (replaced !== value) Reflect.set(owner, key, replaced);
  }
}

function replacement(value: unknown, processGroup: ProcessGroup): unknown {
  if (value instanceof Module) return convertSyncBatchNorm(value, processGroup);
  if (Array.isArray(value) || value instanceof Map) replaceWithin(value, processGroup);
  return value;
}

function converted(from: BatchNorm1d | BatchNorm2d, processGroup: ProcessGroup): SyncBatchNorm {
  const made = new SyncBatchNorm(from.numFeatures, from.options, processGroup);
  const { weight, bias, runningMean, runningVar, numBatchesTracked, training } = from;
  return Object.assign(made, { weight, bias, runningMean, runningVar, numBatchesTracked, training });
}

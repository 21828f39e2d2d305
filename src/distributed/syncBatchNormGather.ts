import { deferred } from "../base/deferred";
import { type Tensor, throughHost } from "../tensor";
import { areGradientsEnabled, versionOf } from "../tensor/apply";
import type { Operator } from "../tensor/operators/table";
import type { ProcessGroup } from "./processGroup";

/** By group: resolves when the last all-reduce of all asked for so far has started. They start in the order in which they were recorded. */
const started = new WeakMap<ProcessGroup, Promise<void>>();

/**
 * The sum of a tensor over all ranks, which the graph goes on with once it comes; its gradient is the sum of all ranks' gradients. All ranks must
 * record the same ones in the same order, and nothing else may use the group.
 * @param values float32, of the same shape on all ranks.
 */
export function sumOverRanks(values: Tensor, group: ProcessGroup): Tensor {
  const before = started.get(group) ?? Promise.resolve();
  const own = deferred<void>();
  started.set(group, own.promise);
  const sum = async (data: Float32Array<ArrayBuffer>) => {
    await before;
    const work = group.allReduce(data);
    own.resolve();
    await work.wait();
    return data;
  };
  if (!areGradientsEnabled() || !values.requiresGrad) return throughHost(values, values.shape, sum);
  const operator: Operator = {
    name: "sumOverRanks",
    infer: ([input]) => input!,
    lower: () => {
      throw new Error("sumOverRanks isn't recorded: its result comes from other ranks.");
    },
    backward: ({ gradient }) => [sumOverRanks(gradient, group)],
  };
  const gradFn = { operator, inputs: [values], attributes: {}, scalars: [], versions: [versionOf(values)] };
  return throughHost(values, values.shape, sum, gradFn);
}

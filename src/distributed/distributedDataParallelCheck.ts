import type { Module } from "../nn";
import type { ProcessGroup } from "./processGroup";
import { CollectiveError } from "./work";

/** One tensor of a model, as ranks compare it. */
interface Described {
  readonly kind: "parameter" | "buffer";
  readonly name: string;
  readonly type: string;
  readonly requiresGrad: boolean;
}

/**
 * Compares the model with the other ranks': names, types and shapes of parameters and buffers, in their order.
 * @throws CollectiveError on every rank, naming both sides, where one differs from rank 0's.
 */
export async function checkReplicas(module: Module, group: ProcessGroup): Promise<void> {
  const texts = await gatherTexts(JSON.stringify(describeModel(module)), group);
  const models = texts.map((text): readonly Described[] => JSON.parse(text));
  const first = models[0] ?? [];
  for (const [rank, model] of models.entries()) {
    const difference = compare(first, model, rank);
    if (difference !== null)
      throw new CollectiveError(
        `DistributedDataParallel: the model isn't the same on all ranks. ${difference} Build the same model, in the same order, on every rank.`,
      );
  }
}

function describeModel(module: Module): Described[] {
  const list = (kind: Described["kind"], named: ReturnType<Module["namedParameters"]>): Described[] =>
    named.map(([name, tensor]) => ({ kind, name, type: String(tensor), requiresGrad: tensor.requiresGrad }));
  return [...list("parameter", module.namedParameters()), ...list("buffer", module.namedBuffers())];
}

/** What makes a rank's model differ from rank 0's, as a sentence; null for nothing. */
function compare(first: readonly Described[], other: readonly Described[], rank: number): string | null {
  for (const kind of ["parameter", "buffer"] as const) {
    const [mine, theirs] = [first, other].map((model) => model.filter((one) => one.kind === kind));
    if (mine === undefined || theirs === undefined) continue;
    if (mine.length !== theirs.length) {
      const [longer, who] = mine.length > theirs.length ? [mine, 0] : [theirs, rank];
      const extra = longer.find(({ name }) => !(who === 0 ? theirs : mine).some((one) => one.name === name));
      const only = extra === undefined ? "" : ` Only rank ${who} has ${extra.name}.`;
      return `Rank 0 has ${mine.length} ${kind}s and rank ${rank} has ${theirs.length}.${only}`;
    }
    for (const [index, one] of mine.entries()) {
      const two = theirs[index]!;
      const text = ({ name, type, requiresGrad }: Described) =>
        `${name}, ${type}${kind === "parameter" && !requiresGrad ? ", frozen" : ""}`;
      if (text(one) !== text(two))
        return `Rank 0's ${kind} ${index} is ${text(one)}, and rank ${rank}'s is ${text(two)}.`;
    }
  }
  return null;
}

/** Every rank's text, by rank. */
async function gatherTexts(text: string, group: ProcessGroup): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  const lengths = new Uint32Array(group.worldSize);
  await group.allGatherIntoTensor(lengths, Uint32Array.of(bytes.length)).wait();
  const longest = Math.max(...lengths);
  const all = new Uint8Array(longest * group.worldSize);
  const own = new Uint8Array(longest);
  own.set(bytes);
  await group.allGatherIntoTensor(all, own).wait();
  return Array.from(lengths, (length, rank) =>
    new TextDecoder().decode(all.subarray(rank * longest, rank * longest + length)),
  );
}

import { full } from "./operators/creation";
import { copy_ } from "./operators/inPlace";
import { readInto } from "./runtime";
import { OperatorError, type Shape } from "./shape";
import { Memory, Storage } from "./storage";
import { Tensor } from "./tensor";

/** Where each parameter lies in the flat buffers, in elements. `length` includes the zeros between them. */
export interface ParameterLayout {
  readonly entries: readonly ParameterEntry[];
  readonly length: number;
}

export interface ParameterEntry {
  readonly name: string;
  readonly shape: Shape;
  /** A multiple of 64 elements (256 bytes). */
  readonly offset: number;
  readonly length: number;
}

const alignment = 64;
const aligned = (length: number): number => Math.ceil(length / alignment) * alignment;

/**
 * Packs parameters into one buffer of weights and one of gradients: each parameter, and its `grad`, becomes a part of
 * them, so that an optimizer, an all-reduce or a checkpoint takes all at once. The padding between them stays zero.
 */
export class FlatParameters {
  readonly layout: ParameterLayout;
  /** All weights, [layout.length]. */
  readonly weights: Tensor;
  /** All gradients and the extra slots, [layout.length + extra]. */
  readonly gradients: Tensor;
  /** Slots at the gradients' end, [extra], for sums that travel with them. */
  readonly extra: Tensor;

  /**
   * @param named parameters (float32 leaves) by name; one under two names is packed once, under the first.
   * @param extra the number of extra slots.
   */
  constructor(named: Iterable<[string, Tensor]>, { extra = 0 }: { readonly extra?: number } = {}) {
    const parameters = new Map<Tensor, string>();
    for (const [name, parameter] of named) if (!parameters.has(parameter)) parameters.set(parameter, name);
    const entries: ParameterEntry[] = [];
    let length = 0;
    for (const [parameter, name] of parameters) {
      if (!parameter.isLeaf || parameter.dtype !== "float32")
        throw new OperatorError("FlatParameters", `${name} is ${parameter}; expected a float32 leaf`);
      entries.push({ name, shape: parameter.shape, offset: length, length: parameter.numel });
      length += aligned(parameter.numel);
    }
    this.layout = { entries, length };
    const weights = new Memory(length, `the flat weights of ${entries.length} parameters`);
    const gradients = new Memory(length + extra, `the flat gradients of ${entries.length} parameters`);
    this.weights = part(weights, 0, [length]);
    this.gradients = part(gradients, 0, [length + extra]);
    this.extra = part(gradients, length, [extra]);
    for (const [i, parameter] of [...parameters.keys()].entries()) {
      const { offset, shape } = entries[i]!;
      move(parameter, new Storage(weights, offset, parameter.numel));
      parameter.grad = part(gradients, offset, shape);
    }
  }

  /** Sets the gradients and the extra slots to zero. */
  zeroGradients(): void {
    copy_(this.gradients, full(this.gradients.shape, 0));
  }

  /** The gradients at [from, to) as a tensor of their own, in the same memory. `from` is a multiple of 64. */
  gradientRange(from: number, to: number): Tensor {
    const { source } = this.gradients;
    if (source.kind !== "storage" || from % alignment !== 0)
      throw new RangeError(`A range of gradients begins at ${from}; expected a multiple of ${alignment}.`);
    return part(source.storage.memory, from, [to - from]);
  }

  /** Overwrites all weights; `values` has layout.length elements, with zeros as padding. */
  writeWeights(values: Float32Array): void {
    this.weights.write(values);
  }

  async readWeights(into: Float32Array = new Float32Array(this.layout.length)): Promise<Float32Array> {
    return readInto(this.weights, into);
  }

  /** The gradients and the extra slots, layout.length + extra elements. */
  async readGradients(into: Float32Array = new Float32Array(this.gradients.numel)): Promise<Float32Array> {
    return readInto(this.gradients, into);
  }
}

function part(memory: Memory, offset: number, shape: Shape): Tensor {
  const length = shape.reduce((product, size) => product * size, 1);
  return new Tensor(shape, "float32", { kind: "storage", storage: new Storage(memory, offset, length) }, false, null);
}

/** Gives a parameter's value another place. */
function move(parameter: Tensor, storage: Storage): void {
  const before = parameter.detach();
  parameter.source = { kind: "storage", storage };
  const words = before.source.kind === "storage" ? before.source.storage.hostWords : null;
  if (words) storage.memory.write(words, storage.offset);
  else copy_(parameter, before);
}

import type { DType } from "./dtype";
import { Graph, StructureHash } from "./graph";
import type { Shape } from "./shape";
import type { Memory, Storage } from "./storage";

/** The op of a node that stands for a storage. Its attributes say which memory (by first use) and where in it. */
export const leafOp = "leaf";

/** A graph on its way to the GPU, with the storages that its leaves stand for and those its results go to. */
export class Recording {
  readonly graph = new Graph();
  /** By leaf node. */
  readonly leaves = new Map<number, Storage>();
  /** By node whose value must survive. */
  readonly outputs = new Map<number, Storage>();
  /** Leaves that are changed in place. */
  readonly changed = new Set<number>();
  flushed = false;
  private readonly leafOf = new Map<Storage, number>();
  private readonly memories = new Map<Memory, number>();

  /** The node of a storage. */
  leaf(storage: Storage, shape: Shape, dtype: DType): number {
    const known = this.leafOf.get(storage);
    if (known !== undefined) return known;
    const memory = this.memories.get(storage.memory) ?? this.memories.size;
    if (memory === this.memories.size) this.pin(storage.memory);
    const isShared = storage.length !== storage.memory.length;
    const attributes = { memory, offset: storage.offset, isShared };
    const index = this.graph.add({ op: leafOp, inputs: [], attributes, scalars: [], shape, dtype });
    this.leaves.set(index, storage);
    this.leafOf.set(storage, index);
    return index;
  }

  /** Lets a node's value survive in `storage`, whose memory nothing else uses. */
  output(index: number, storage: Storage): void {
    this.outputs.set(index, storage);
    this.pin(storage.memory);
  }

  uses(memory: Memory): boolean {
    return this.memories.has(memory);
  }

  /** Identifies the plan: recordings with equal structure have equal ones. */
  get structure(): number {
    const hash = new StructureHash();
    hash.number(this.graph.structure);
    for (const index of this.outputs.keys()) hash.number(index);
    return hash.value;
  }

  /** Lets whoever uses what the recording would have computed or changed see why it did not. */
  fail(reason: Error): void {
    for (const { memory } of this.outputs.values()) memory.failure = reason;
    for (const index of this.changed) this.leaves.get(index)!.memory.failure = reason;
    this.unpin();
  }

  /** Forgets the memories, after the recording ran or failed. */
  unpin(): void {
    for (const memory of this.memories.keys()) memory.pins -= 1;
    this.memories.clear();
  }

  private pin(memory: Memory): void {
    this.memories.set(memory, this.memories.size);
    memory.pins += 1;
  }
}

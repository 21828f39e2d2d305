import type { Device } from "../gpu";
import { bytesPerElement, type DType } from "./dtype";
import { Graph, StructureHash } from "./graph";
import type { Shape } from "./shape";
import type { Memory, Storage } from "./storage";
import { Structure } from "./structure";

/** What is done as soon as all steps that write a part of a memory are recorded. */
export interface Milestone {
  readonly storage: Storage;
  reached(device: Device): void;
  /** The recording failed before. */
  failed?(reason: Error): void;
}

/** The op of a node that stands for a storage. Its attributes say which memory (by first use) and where in it. */
export const leafOp = "leaf";
/** The op of a node that stands for a result of one element from an earlier recording, which lies in the ring. */
export const scalarOp = "scalar";

/** How many results of one element a device's ring holds before the oldest is overwritten. */
export const scalarSlots = 16_384;
/** Results of one element in all recordings that were taken. */
let scalarsTaken = 0;

/** A graph on its way to the GPU, with the storages that its leaves stand for and those its results go to. */
export class Recording {
  readonly graph: Graph;
  /** By leaf node. */
  readonly leaves = new Map<number, Storage>();
  /** By node whose value must survive. */
  readonly outputs = new Map<number, Storage>();
  /** Leaves that are changed in place. */
  readonly changed: Set<number>;
  /** Results of one element: they survive in the device's ring, each in a slot of its own. */
  readonly scalars: number[];
  /** By scalar node: whose value it is. */
  readonly scalarLeaves = new Map<number, ScalarResult>();
  /** What is read on the way. */
  readonly milestones: Milestone[] = [];
  flushed = false;
  /** The device that ran it. */
  device: Device | null = null;
  /** Why it did not run. */
  failure: Error | null = null;
  private firstScalar = 0;
  private readonly scalarIndices: Map<number, number>;
  private readonly scalarLeafOf = new Map<number, number>();
  private readonly leafOf = new Map<Storage, number>();
  private readonly memories = new Map<Memory, number>();
  private knownStructure: Structure | null = null;

  /** @param model a closed recording whose steps this one takes again. */
  constructor(private readonly model: Recording | null = null) {
    this.graph = model?.graph ?? new Graph();
    this.changed = model?.changed ?? new Set();
    this.scalars = model?.scalars ?? [];
    this.scalarIndices = model?.scalarIndices ?? new Map();
  }

  /**
   * The same steps, closed, to be run once.
   * @param leaves which storages others take the place of.
   * @param outputs as many for the results.
   */
  again(leaves: ReadonlyMap<Storage, Storage>, outputs: ReadonlyMap<Storage, Storage>): Recording {
    const recording = new Recording(this);
    for (const [node, storage] of this.leaves) recording.bind(recording.leaves, node, leaves.get(storage) ?? storage);
    for (const [node, storage] of this.outputs)
      recording.bind(recording.outputs, node, outputs.get(storage) ?? storage);
    recording.close();
    return recording;
  }

  private bind(places: Map<number, Storage>, node: number, storage: Storage): void {
    places.set(node, storage);
    if (!this.memories.has(storage.memory)) this.pin(storage.memory);
  }

  /** The node of a storage. */
  leaf(storage: Storage, shape: Shape, dtype: DType): number {
    const known = this.leafOf.get(storage);
    if (known !== undefined) return known;
    const memory = this.memories.get(storage.memory) ?? this.memories.size;
    if (memory === this.memories.size) this.pin(storage.memory);
    const isShared = storage.length !== storage.memory.length;
    const common = { memory, offset: storage.offset, isShared };
    const attributes = storage.memory.isFromElsewhere ? { ...common, arrives: true } : common;
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

  /**
   * Lets a node's value, one element, survive in the ring.
   * @param alias a node whose element it is, if any.
   */
  survive(index: number, alias: number | null = null): void {
    const known = alias === null ? undefined : this.scalarIndices.get(alias);
    this.scalarIndices.set(index, known ?? this.scalars.push(index) - 1);
  }

  /** A node's value in the ring, or null if it doesn't survive there. */
  scalar(index: number): ScalarResult | null {
    const ordinal = this.scalarIndices.get(index);
    if (ordinal === undefined) return null;
    return { recording: this, ordinal, op: this.graph.nodes[this.scalars[ordinal]!]!.op };
  }

  /** The node of a result of one element from an earlier recording. */
  scalarLeaf(scalar: ScalarResult, shape: Shape, dtype: DType): number {
    const key = checkedSequence(scalar) * 16 + shape.length;
    const known = this.scalarLeafOf.get(key);
    if (known !== undefined) return known;
    const index = this.graph.add({ op: scalarOp, inputs: [], attributes: {}, scalars: [], shape, dtype });
    this.scalarLeaves.set(index, scalar);
    this.scalarLeafOf.set(key, index);
    return index;
  }

  /** Closes the recording, and gives its results of one element their slots. */
  close(): void {
    this.flushed = true;
    this.firstScalar = scalarsTaken;
    scalarsTaken += this.scalars.length;
  }

  /** The place in the order of all results of one element, once the recording is closed. */
  sequence(ordinal: number): number {
    return this.firstScalar + ordinal;
  }

  uses(memory: Memory): boolean {
    return this.memories.has(memory);
  }

  /** Identifies the plan: recordings with equal structure have equal ones. */
  get structure(): Structure {
    if (this.model) return this.model.structure;
    if (this.knownStructure) return this.knownStructure;
    const outputs = [...this.outputs.keys()];
    const hash = new StructureHash();
    hash.number(this.graph.hash);
    hash.list(outputs);
    hash.list(this.scalars);
    const structure = new Structure(hash.value, this.graph.nodes, outputs, this.scalars);
    if (this.flushed) this.knownStructure = structure;
    return structure;
  }

  /** Lets whoever uses what the recording would have computed or changed see why it did not. */
  fail(reason: Error): void {
    this.failure = reason;
    for (const { memory } of this.outputs.values()) memory.failure = reason;
    for (const index of this.changed) this.leaves.get(index)!.memory.failure = reason;
    for (const milestone of this.milestones) milestone.failed?.(reason);
    this.unpin();
  }

  /** Gives up what was recorded, of which nothing has run: what it would have changed is as before. */
  abandon(): void {
    this.close();
    this.failure = new Error("What was recorded was given up, since recording it failed.");
    for (const { memory } of this.outputs.values()) memory.failure = this.failure;
    this.unpin();
  }

  /** Forgets what it ran on: results that somebody keeps refer to it, and must not keep a batch alive. */
  finish(): void {
    this.unpin();
    this.leaves.clear();
    this.outputs.clear();
    this.scalarLeaves.clear();
    this.leafOf.clear();
    this.scalarLeafOf.clear();
    this.milestones.length = 0;
  }

  /** Lets others have the memories, after the recording ran or failed. */
  unpin(): void {
    for (const memory of this.memories.keys()) memory.pins -= 1;
    this.memories.clear();
  }

  private pin(memory: Memory): void {
    this.memories.set(memory, this.memories.size);
    memory.pins += 1;
  }
}

/** Resolves when what storages wait for has come; null where they wait for nothing. */
export function arrivalsOf(storages: Iterable<Storage>): Promise<unknown> | null {
  let pending: Promise<unknown>[] | null = null;
  for (const { memory } of storages) if (memory.arrival) pending = [...(pending ?? []), memory.arrival];
  return pending && Promise.all(pending);
}

/** A result of one element, in its recording's order of them. */
export interface ScalarResult {
  readonly recording: Recording;
  readonly ordinal: number;
  /** What made it. */
  readonly op: string;
}

/** Its place in the order of all results of one element; throws if the ring has it no more. */
function checkedSequence({ recording, ordinal, op }: ScalarResult): number {
  const sequence = recording.sequence(ordinal);
  if (sequence < scalarsTaken - scalarSlots)
    throw new Error(
      `The tensor of one element that ${op} made is gone: such results survive until ${scalarSlots} later ones, and there were more. ` +
        "Read it earlier, or call keep() on it.",
    );
  return sequence;
}

/** The byte in the device's ring where the element of a closed recording lies. */
export function scalarOffset(scalar: ScalarResult, device: Device): number {
  const { recording, op } = scalar;
  if (recording.failure)
    throw new Error(
      `The tensor that ${op} made has no value: the flush that was to compute it failed. ${recording.failure.message}`,
      { cause: recording.failure },
    );
  if (recording.device !== device)
    throw new Error(
      `The tensor that ${op} made lies on a GPU device that is no longer the current one. Read tensors before you change the device.`,
    );
  return (checkedSequence(scalar) % scalarSlots) * bytesPerElement;
}

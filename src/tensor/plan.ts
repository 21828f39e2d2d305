import { type BufferSlice, type Device, type Grid, type Kernel, uniformBlockBytes } from "../gpu";
import { bytesPerElement, type ComputeType, type DType } from "./dtype";
import { type Milestone, type Recording, scalarOffset, scalarSlots } from "./recording";
import type { Shape } from "./shape";
import type { Memory, Storage } from "./storage";
import type { Scratch, Workspace } from "./workspace";

/** Where a binding's buffer comes from: scratch memory is fixed, leaves and outputs come with each recording. */
export type Place =
  | { readonly kind: "scratch"; readonly slice: BufferSlice }
  | { readonly kind: "leaf" | "output"; readonly node: number };

/** A place from an offset in bytes up to its end. */
export interface PlacedBinding {
  readonly place: Place;
  readonly offset: number;
}

/** A tensor that a step reads or writes, and how many bytes of its memory. */
export interface Operand {
  readonly shape: Shape;
  readonly dtype: DType;
  readonly bytes: number;
}

export interface Step {
  readonly kernel: Kernel;
  readonly bindings: readonly PlacedBinding[];
  readonly uniforms: Uint32Array;
  readonly patches: readonly {
    readonly word: number;
    readonly node: number;
    readonly index: number;
    readonly dtype: ComputeType;
  }[];
  readonly grid: Grid;
  readonly work: number;
  /** The bytes that results hold in scratch memory while it runs: its own, and those that later steps need. */
  readonly held: number;
  /** What it reads and writes, for whoever wants to know. */
  readonly reads: readonly Operand[];
  readonly writes: readonly Operand[];
  /** The last replay's slices and their bind group: usually also the next one's. */
  slices: BufferSlice[];
  bindGroup: GPUBindGroup | null;
}

const noMilestones: readonly Milestone[] = [];

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

/** A recorded structure, lowered to kernel calls. Replaying it creates no buffer, pipeline or bind group. */
export class Plan {
  constructor(
    readonly steps: readonly Step[],
    private readonly scratches: readonly Scratch[],
    private readonly workspace: Workspace,
    /** Where the recording's scalars from the ring are taken. */
    private readonly scalarInputs: readonly { readonly node: number; readonly target: PlacedBinding }[],
    /** The results of one element that go to the ring, in the recording's order. */
    private readonly scalarOutputs: readonly PlacedBinding[],
  ) {}

  /** The most bytes that results hold in scratch memory at once: activations, for the most part, in a training step. */
  get peakBytes(): number {
    return this.steps.reduce((most, { held }) => Math.max(most, held), 0);
  }

  get scratchCount(): number {
    return this.scratches.length;
  }

  get scratchBytes(): number {
    return this.scratches.reduce((sum, { buffer }) => sum + buffer.size, 0);
  }

  /** Resolves when all its kernels are compiled; null when they are. */
  get ready(): Promise<unknown> | null {
    const pending = this.steps.flatMap(({ kernel }) => kernel.ready ?? []);
    return pending.length > 0 ? Promise.all(pending) : null;
  }

  /**
   * Records the steps with a recording's leaves, outputs and scalars; waits only for values that come from elsewhere.
   * @param ring the device's results of one element.
   */
  replay(device: Device, recording: Recording, ring: GPUBuffer, further = noMilestones): void | Promise<void> {
    const { recorder } = device;
    const { nodes } = recording.graph;
    const storageSlices = new Map<number, BufferSlice>();
    for (const [node, storage] of recording.leaves) storageSlices.set(node, storage.slice(device));
    for (const [node, storage] of recording.outputs) storageSlices.set(node, storage.slice(device));
    for (const { node, target } of this.scalarInputs) {
      const { buffer, offset } = sliceOf(target, storageSlices);
      recorder.copy(ring, scalarOffset(recording.scalarLeaves.get(node)!, device), buffer.gpu, offset, bytesPerElement);
    }
    const milestones = recording.milestones.length > 0 ? [...recording.milestones, ...further] : further;
    const due = milestones.map((milestone) => this.lastWrite(recording, milestone.storage));
    const reach = (at: number) => {
      for (const [k, milestone] of milestones.entries()) if (due[k] === at) milestone.reached(device);
    };
    if (milestones.length > 0) reach(-1);
    const record = (i: number) => {
      const step = this.steps[i]!;
      for (const { word, node, index, dtype } of step.patches)
        step.uniforms[word] = encodeWord(nodes[node]!.scalars[index]!, dtype);
      recorder.dispatch(step.kernel, bindGroupOf(device, step, storageSlices), step.uniforms, step.grid, step.work);
      if (milestones.length > 0) reach(i);
    };
    const finish = () => {
      for (let i = Math.max(0, this.scalarOutputs.length - scalarSlots); i < this.scalarOutputs.length; i++) {
        const { buffer, offset } = sliceOf(this.scalarOutputs[i]!, storageSlices);
        const at = (recording.sequence(i) % scalarSlots) * bytesPerElement;
        recorder.copy(buffer.gpu, offset, ring, at, bytesPerElement);
      }
      recording.device = device;
    };
    const arrivals = this.arrivals(recording);
    if (arrivals) return this.recordWaiting(device, arrivals, record).then(finish);
    for (let i = 0; i < this.steps.length; i++) record(i);
    finish();
  }

  private async recordWaiting(
    device: Device,
    arrivals: ReadonlyMap<number, readonly Memory[]>,
    record: (step: number) => void,
  ): Promise<void> {
    for (let i = 0; i < this.steps.length; i++) {
      const memories = arrivals.get(i) ?? [];
      if (memories.length > 0) device.recorder.submit();
      for (const memory of memories) {
        await memory.arrival;
        // Throws where they didn't come.
        memory.on(device);
      }
      record(i);
    }
  }

  /** By step: the memories whose values come from elsewhere and that it is the first to use; null where all are there. */
  private arrivals(recording: Recording): Map<number, Memory[]> | null {
    let arrivals: Map<number, Memory[]> | null = null;
    for (const [node, { memory }] of recording.leaves) {
      if (!memory.arrival) continue;
      const first = this.steps.findIndex(({ bindings }) =>
        bindings.some(({ place }) => place.kind === "leaf" && place.node === node),
      );
      arrivals ??= new Map();
      arrivals.set(first, [...(arrivals.get(first) ?? []), memory]);
    }
    return arrivals;
  }

  /** The last step that writes to a part of a memory; -1 for none. */
  private lastWrite(recording: Recording, { memory, offset, length }: Storage): number {
    const overlaps = ({ place }: PlacedBinding): boolean => {
      if (place.kind === "scratch") return false;
      const storage = (place.kind === "leaf" ? recording.leaves : recording.outputs).get(place.node)!;
      return storage.memory === memory && storage.offset < offset + length && offset < storage.offset + storage.length;
    };
    return this.steps.findLastIndex(({ bindings, kernel }) =>
      bindings.some((binding, i) => kernel.shader.bindings[i] === "write" && overlaps(binding)),
    );
  }

  /** Lets other plans and the pool have its scratch memory. */
  release(): void {
    this.workspace.release(this.scratches);
  }
}

function sliceOf({ place, offset }: PlacedBinding, storageSlices: ReadonlyMap<number, BufferSlice>): BufferSlice {
  const whole = place.kind === "scratch" ? place.slice : storageSlices.get(place.node)!;
  return offset === 0 ? whole : whole.buffer.slice(whole.offset + offset, whole.size - offset);
}

function bindGroupOf(device: Device, step: Step, storageSlices: ReadonlyMap<number, BufferSlice>): GPUBindGroup {
  let changed = step.bindGroup === null;
  for (let i = 0; i < step.bindings.length; i++) {
    const slice = sliceOf(step.bindings[i]!, storageSlices);
    if (slice === step.slices[i]) continue;
    step.slices[i] = slice;
    changed = true;
  }
  if (changed || !step.bindGroup) step.bindGroup = device.pipelines.bindGroup(step.kernel, step.slices);
  return step.bindGroup;
}

export const uniformWords = uniformBlockBytes / 4;

/** The word that holds a number as a kernel reads it. */
export function encodeWord(value: number, dtype: ComputeType): number {
  switch (dtype) {
    case "float32":
      floats[0] = value;
      return words[0]!;
    case "int32":
      return value >>> 0;
    case "bool":
      return value ? 1 : 0;
  }
}

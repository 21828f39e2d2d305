import { type Access, type Device, type Grid, type Shader, sizeClass } from "../gpu";
import { bytesOf, bytesPerElement, type ComputeType, computeType, type DType, isNarrow } from "./dtype";
import {
  fits,
  fusedKernel,
  type Group,
  isLinear,
  type Member,
  type Operand,
  type Prologue,
  type Stored,
  stepsOf,
  storesSingly,
} from "./fusion";
import type { Node } from "./graph";
import { withNarrowReads } from "./narrowFloats";
import { copyInto, fillInto, identity } from "./operators/copy";
import { broadcastStrides, type ElementFunction } from "./operators/elementwiseKernel";
import { operatorNamed } from "./operators/registry";
import {
  type BufferValue,
  bindingElements,
  innerOffset,
  type KernelCall,
  type LoweredNode,
  type Lowering,
  type Producer,
  type Root,
  type ScalarReference,
  type Value,
} from "./operators/table";
import { encodeWord, type Place, type PlacedBinding, Plan, type Step, uniformWords } from "./plan";
import { leafOp, type Recording, scalarOp } from "./recording";
import { contiguousStrides, describeShape, type Shape, sizeOf } from "./shape";
import type { Scratch, Workspace } from "./workspace";

interface PlannedRoot extends Root {
  /** Of the value that it was made for. */
  readonly shape: Shape;
  readonly dtype: DType;
  /** Null while no kernel was planned that stores it. */
  place: Place | null;
  /** Which memory it lies in, for leaves: kernels can't read and write one memory at once. */
  readonly memory: number | null;
  /** Where in that memory it begins, in words. */
  readonly start: number;
  scratch: { readonly size: number; readonly ordinal: number } | null;
  /** Uses by nodes still to be lowered, and by groups whose kernels are not planned yet. */
  uses: number;
  /** The group that computes it, while its kernel is not planned. */
  group: PendingGroup | null;
}

type PendingGroup = Group<PlannedRoot>;
type PendingMember = Member<PlannedRoot>;
type PendingOperand = Operand<PlannedRoot>;

/** Lowers a recording: only what is needed for its outputs and effects, with scratch memory reused by lifetime. */
export function planRecording(recording: Recording, device: Device, workspace: Workspace): Plan {
  const planner = new Planner(recording, device, workspace);
  try {
    return planner.plan();
  } catch (reason) {
    planner.release();
    throw reason;
  }
}

class Planner implements Lowering {
  readonly isSoftware: boolean;
  private readonly hasHalves: boolean;
  private readonly steps: Step[] = [];
  private readonly scratches: Scratch[] = [];
  /** By size class: how many buffers were taken, and which are free. */
  private readonly taken = new Map<number, number>();
  private readonly free = new Map<number, number[]>();
  private readonly values = new Map<number, Value>();
  /** The planner's view of the roots that values refer to; a root that was recycled is gone. */
  private readonly roots = new Map<Root, PlannedRoot>();
  private temporaries: PlannedRoot[] = [];
  private node = 0;
  private readonly uses: Int32Array;
  /** Nodes of one element that survive in the ring. */
  private readonly ringed: ReadonlySet<number>;
  private readonly scalars = new Map<number, BufferValue>();
  /** Leaves that are to be zero, while no kernel was planned for that: what is added to them may be stored instead. */
  private readonly zeroed = new Set<PlannedRoot>();
  /** Groups whose kernels are not planned yet: more may join them. */
  private readonly pending = new Set<PendingGroup>();
  private readonly scalarInputs: { readonly node: number; readonly target: PlacedBinding }[] = [];

  constructor(
    private readonly recording: Recording,
    private readonly device: Device,
    private readonly workspace: Workspace,
  ) {
    this.isSoftware = device.isSoftware;
    this.hasHalves = device.gpu.features.has("shader-f16");
    this.uses = countUses(recording);
    this.ringed = new Set(recording.scalars);
  }

  plan(): Plan {
    const { nodes } = this.recording.graph;
    this.takeScalars();
    for (const index of nodes.keys()) {
      if (this.uses[index]! < 0) continue;
      this.node = index;
      let value = this.asStored(this.valueOf(index));
      if (this.recording.outputs.has(index) && !this.isOutput(value, index)) {
        const output = this.home();
        copyInto(this, value, output);
        value = output;
      }
      if (this.ringed.has(index)) {
        value = this.scalar(value);
        this.scalars.set(index, value);
        this.rootOf(value).uses += 1;
      }
      this.values.set(index, value);
      if (value.kind === "buffer") this.rootOf(value).uses += this.uses[index]!;
      for (const root of this.rootsOf(this.inputsOf(index))) this.drop(root);
      if (value.kind === "buffer") this.recycle(this.rootOf(value));
      for (const root of this.temporaries) this.recycle(root);
      this.temporaries = [];
    }
    for (const group of this.pending) this.settle(group);
    for (const root of this.zeroed) this.fillZeros(root);
    const survivors = this.recording.scalars.map((index) => this.placed(this.scalars.get(index)!));
    return new Plan(this.steps, this.scratches, this.workspace, this.scalarInputs, survivors);
  }

  /** Gives up a plan that could not be finished. */
  release(): void {
    this.workspace.release(this.scratches);
  }

  result(): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    return isNarrow(dtype) ? this.allocate(shape, "float32") : this.home();
  }

  allocate(shape: Shape, dtype: ComputeType): BufferValue {
    return this.allocated(shape, dtype);
  }

  private allocated(shape: Shape, dtype: DType): BufferValue {
    const root = this.newRoot(shape, dtype, null);
    this.place(root, this.node);
    this.temporaries.push(root);
    return this.valueIn(root, shape);
  }

  /** Memory for the node's result, of its type. */
  private home(): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    if (!this.recording.outputs.has(this.node)) return this.allocated(shape, dtype);
    return this.valueIn(this.newRoot(shape, dtype, { kind: "output", node: this.node }), shape);
  }

  /** The node's value, rounded where its operator computed in a wider type than the node's. */
  private asStored(value: Value): Value {
    const { dtype } = this.recording.graph.nodes[this.node]!;
    if (value.kind === "constant" || !isNarrow(dtype) || this.rootOf(value).dtype === dtype) return value;
    return this.elementwise(identity, [value], []);
  }

  private newRoot(shape: Shape, dtype: DType, place: Place | null): PlannedRoot {
    const bytes = byteSize(shape, dtype);
    const root: PlannedRoot = {
      shape,
      dtype,
      bytes,
      isShared: false,
      place,
      memory: null,
      start: 0,
      scratch: null,
      uses: 0,
      group: null,
    };
    this.roots.set(root, root);
    return root;
  }

  private valueIn(root: Root, shape: Shape): BufferValue {
    const dtype = computeType(root.dtype);
    return { kind: "buffer", root, shape, dtype, strides: contiguousStrides(shape), offset: 0 };
  }

  /** Finds scratch memory for a root. */
  private place(root: PlannedRoot, node: number): void {
    const size = sizeClass(root.bytes);
    let ordinal = this.free.get(size)?.pop();
    if (ordinal === undefined) {
      ordinal = this.taken.get(size) ?? 0;
      this.taken.set(size, ordinal + 1);
      this.scratches.push(
        this.workspace.acquire(
          size,
          ordinal,
          `${this.recording.graph.nodes[node]!.op}: a tensor of shape ${describeShape(root.shape)}`,
        ),
      );
    }
    root.place = { kind: "scratch", slice: this.workspace.peek(size, ordinal).slice };
    root.scratch = { size, ordinal };
  }

  dense(value: Value): BufferValue {
    if (value.kind === "constant") return this.buffer(value);
    if (innerOffset(value) === 0 && isContiguous(value.shape, value.strides)) return value;
    const copy = this.allocated(value.shape, this.rootOf(value).dtype);
    copyInto(this, value, copy);
    return copy;
  }

  buffer(value: Value): BufferValue {
    if (value.kind === "buffer") return value;
    const filled = this.allocate(value.shape, value.dtype);
    copyInto(this, value, filled);
    return filled;
  }

  dispatch(call: KernelCall): void {
    for (const value of call.bindings) this.settle(this.rootOf(value).group);
    for (const [i, value] of call.bindings.entries())
      if (call.shader.bindings[i] === "write") {
        const { memory, dtype } = this.rootOf(value);
        if (isNarrow(dtype)) throw new Error(`The kernel ${call.shader.name} can't write ${dtype}.`);
        this.settleReaders(memory);
      }
    this.emit(call);
  }

  elementwise(f: ElementFunction, operands: readonly Value[], scalars: readonly ScalarReference[]): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    if (sizeOf(shape) === 0) return this.result();
    const value = this.unplaced(shape, dtype);
    const target = this.rootOf(value);
    const members = this.joined(f, operands, scalars, shape, target, true);
    this.wait({ count: sizeOf(shape), members });
    return value;
  }

  produce(producer: Producer): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    const count = sizeOf(shape);
    if (count === 0) return this.result();
    const value = this.unplaced(shape, dtype);
    this.wait({ count, members: [this.producerMember(producer, dtype, this.rootOf(value))] });
    return value;
  }

  produceInto(producer: Producer, out: BufferValue): void {
    const member = this.producerMember(producer, out.dtype, this.rootOf(out));
    const group = { count: sizeOf(out.shape), members: [member] };
    this.emit(fusedKernel(group, [{ member, value: out, isUpdated: false, keepsPadding: false }]));
    this.unclaim(group.members);
  }

  zero(target: BufferValue): void {
    const root = this.rootOf(target);
    this.settleReaders(root.memory);
    this.fillOverlapping(root);
    this.zeroed.add(root);
  }

  /** Plans the fills of zeroed leaves that share elements with a root, before they are used. */
  private fillOverlapping({ memory, start, bytes }: PlannedRoot): void {
    if (memory === null) return;
    const end = start + bytes / bytesPerElement;
    for (const root of this.zeroed)
      if (root.memory === memory && root.start < end && start < root.start + root.bytes / bytesPerElement)
        this.fillZeros(root);
  }

  private fillZeros(root: PlannedRoot): void {
    this.zeroed.delete(root);
    fillInto(this, 0, this.valueIn(root, root.shape));
  }

  store(f: ElementFunction, operands: readonly Value[], out: BufferValue): boolean {
    if (innerOffset(out) !== 0 || !isContiguous(out.shape, out.strides)) return false;
    const target = this.rootOf(out);
    const members = this.joined(f, operands, [], out.shape, target, !isNarrow(target.dtype));
    const count = sizeOf(out.shape);
    const used = this.rootsOf(operands);
    const needed = members.slice(0, -1).filter(({ target: root }) => isNeeded(root, used));
    this.settleReaders(target.memory);
    this.emitGroup({ count, members }, needed, [
      {
        member: members.at(-1)!,
        value: out,
        isUpdated: true,
        keepsPadding: target.isShared || target.bytes !== count * bytesOf(target.dtype),
      },
    ]);
    for (const member of members.slice(0, -1)) member.target.group = null;
    this.unclaim(members);
    return true;
  }

  /**
   * The members of the groups that compute the operands, as far as they walk alike and fit one kernel, and behind them
   * the call of `f`. The groups wait no longer.
   * @param followsProducers whether a producer may be among them.
   */
  private joined(
    f: ElementFunction,
    operands: readonly Value[],
    scalars: readonly ScalarReference[],
    shape: Shape,
    target: PlannedRoot,
    followsProducers: boolean,
  ): PendingMember[] {
    const { dtype } = target;
    const walked = operands.map((value) => {
      const steps = value.kind === "buffer" ? stepsOf(shape, broadcastStrides(value, shape)) : null;
      return { value, steps, joins: steps !== null && isLinear(steps) && isWhole(value, sizeOf(shape)) };
    });
    for (const { value, joins } of walked) if (value.kind === "buffer" && !joins) this.settle(this.rootOf(value).group);
    const groups = new Set<PendingGroup>();
    let hasProducer = false;
    for (const { value } of walked) {
      const group = value.kind === "buffer" ? this.rootOf(value).group : null;
      if (!group || groups.has(group)) continue;
      const producing = group.members[0]!.compute.kind === "producer";
      if (producing && (hasProducer || !followsProducers)) {
        this.settle(group);
        continue;
      }
      groups.add(group);
      hasProducer ||= producing;
    }
    const used = this.rootsOf(operands);
    const first: PendingOperand =
      f.updates && this.zeroed.delete(target)
        ? { kind: "constant", scalar: { literal: 0 }, dtype: computeType(dtype) }
        : { kind: "stored", dtype };
    for (;;) {
      const before = [...groups]
        .sort(
          (a, b) =>
            Number(b.members[0]!.compute.kind === "producer") - Number(a.members[0]!.compute.kind === "producer"),
        )
        .flatMap(({ members }) => members);
      const list = walked.map(({ value, steps }): PendingOperand => {
        if (value.kind === "constant") return { kind: "constant", scalar: value.scalar, dtype: value.dtype };
        const root = this.rootOf(value);
        const member = root.group && before.find((one) => one.target === root);
        return member ? { kind: "member", member } : { kind: "load", value, steps: steps! };
      });
      if (f.updates) list.unshift(first);
      const call: PendingMember = { compute: { kind: "call", f, operands: list, scalars }, dtype, target };
      const members = [...before, call];
      const stored = 1 + before.filter(({ target: root }) => isNeeded(root, used)).length;
      if (groups.size > 0 && !fits(members, stored)) {
        for (const group of groups) this.settle(group);
        groups.clear();
        continue;
      }
      for (const group of groups) this.pending.delete(group);
      this.claim([call]);
      return members;
    }
  }

  private producerMember(producer: Producer, dtype: DType, target: PlannedRoot): PendingMember {
    const prologue = this.prologueOf(producer);
    for (const [i, { value }] of producer.inputs.entries())
      if (i > 0 || !prologue) this.settle(this.rootOf(value).group);
    const member: PendingMember = { compute: { kind: "producer", producer, prologue }, dtype, target };
    // A prologue's loads are claimed already.
    for (const { value } of producer.inputs.slice(prologue ? 1 : 0)) this.rootOf(value).uses += 1;
    return member;
  }

  /** The chain behind a producer's first input, where nothing else needs it. */
  private prologueOf(producer: Producer): Prologue<PlannedRoot> | null {
    const first = producer.inputs[0];
    if (!producer.loadsFirst || !first || first.value.offset !== 0) return null;
    const root = this.rootOf(first.value);
    const { group } = root;
    if (!group || group.members[0]!.compute.kind === "producer") return null;
    if (group.members.some(({ target }) => isNeeded(target, [root]))) return null;
    if (!fits(group.members, producer.inputs.length + 2)) return null;
    this.pending.delete(group);
    for (const { target } of group.members) target.group = null;
    return { members: group.members, result: group.members.find(({ target }) => target === root)! };
  }

  /** The node's result, whose memory is found when its kernel is planned. */
  private unplaced(shape: Shape, dtype: DType): BufferValue {
    if (this.recording.outputs.has(this.node)) return this.home();
    return this.valueIn(this.newRoot(shape, dtype, null), shape);
  }

  private wait(group: PendingGroup): void {
    this.pending.add(group);
    for (const { target } of group.members) target.group = group;
  }

  /** Plans the kernel of a group. */
  private settle(group: PendingGroup | null): void {
    if (!group || !this.pending.delete(group)) return;
    const needed = group.members.filter(({ target }) => isNeeded(target, []));
    for (const { target } of group.members) target.group = null;
    if (needed.length > 0) this.emitGroup(group, needed);
    this.unclaim(group.members);
  }

  /**
   * Emits the kernel of a group that stores these members. Behind a producer, what can't be stored singly is stored as
   * float32, and rounded by a kernel of its own.
   */
  private emitGroup(
    group: PendingGroup,
    needed: readonly PendingMember[],
    further: readonly Stored<PlannedRoot>[] = [],
  ): void {
    const isProduced = group.members[0]!.compute.kind === "producer";
    const wide: { readonly from: BufferValue; readonly to: BufferValue }[] = [];
    for (const member of needed) this.placeMember(member);
    const stored = needed.map((member): Stored<PlannedRoot> => {
      const { target } = member;
      const to = this.valueIn(target, target.shape);
      if (!isProduced || storesSingly(target.dtype, this.hasHalves))
        return { member, value: to, isUpdated: false, keepsPadding: false };
      const from = this.allocate(target.shape, "float32");
      wide.push({ from, to });
      return { member, value: from, isUpdated: false, keepsPadding: false };
    });
    this.emit(fusedKernel(group, [...stored, ...further]));
    for (const { from, to } of wide) copyInto(this, from, to);
  }

  /** Plans the kernels of groups that read a memory, before something writes to it. */
  private settleReaders(memory: number | null): void {
    if (memory === null) return;
    for (const group of this.pending)
      if (loadsOf(group.members).some((value) => this.rootOf(value).memory === memory)) this.settle(group);
  }

  private placeMember({ target }: PendingMember): void {
    if (!target.place) this.place(target, this.node);
  }

  /** Keeps what members load until their kernel is planned. */
  private claim(members: readonly PendingMember[]): void {
    for (const value of loadsOf(members)) this.rootOf(value).uses += 1;
  }

  private unclaim(members: readonly PendingMember[]): void {
    for (const value of loadsOf(members)) this.drop(this.rootOf(value));
  }

  /** The roots of values, one for each use. */
  private rootsOf(values: readonly Value[]): PlannedRoot[] {
    return values.flatMap((value) => (value.kind === "buffer" ? [this.rootOf(value)] : []));
  }

  private emit({ shader, bindings, uniforms, grid, work }: KernelCall): void {
    if (grid[0] * grid[1] * grid[2] === 0) return;
    for (const value of bindings) this.fillOverlapping(this.rootOf(value));
    const apart = bindings.map((value, i) =>
      shader.bindings[i] === "read" &&
      bindings.some((other, j) => shader.bindings[j] === "write" && this.clash(value, other))
        ? this.copyOf(value)
        : value,
    );
    const { readable, values } = this.widened(shader, apart);
    const block = new Uint32Array(uniformWords);
    const patches: Step["patches"][number][] = [];
    if (uniforms.length > uniformWords)
      throw new Error(`The kernel ${shader.name} has ${uniforms.length} uniform words; a block holds ${uniformWords}.`);
    for (const [word, uniform] of uniforms.entries()) {
      if (typeof uniform === "number") block[word] = uniform;
      else if ("f32" in uniform) block[word] = encodeWord(uniform.f32, "float32");
      else if ("i32" in uniform) block[word] = encodeWord(uniform.i32, "int32");
      else if ("literal" in uniform.scalar) block[word] = encodeWord(uniform.scalar.literal, uniform.dtype);
      else patches.push({ word, ...uniform.scalar, dtype: uniform.dtype });
    }
    this.steps.push({
      kernel: this.device.pipelines.kernel(readable),
      bindings: values.map((value, i) => this.placed(value, bindingElements(apart[i]!.root))),
      uniforms: block,
      patches,
      grid: checkedGrid(grid, shader.name),
      work,
      ...operandsOf(bindings, shader.bindings),
      slices: [],
      bindGroup: null,
    });
  }

  /** A shader and what it reads, where some of that is stored as narrow floats: it converts them, or gets copies. */
  private widened(
    shader: Shader,
    values: readonly BufferValue[],
  ): { readable: Shader; values: readonly BufferValue[] } {
    const types = values.map((value, i) => {
      const { dtype } = this.rootOf(value);
      return shader.bindings[i] === "read" && isNarrow(dtype) ? dtype : null;
    });
    if (types.every((type) => type === null)) return { readable: shader, values };
    const readable = withNarrowReads(shader, types, this.hasHalves);
    if (readable) return { readable, values };
    return { readable: shader, values: values.map((value, i) => (types[i] ? this.copyOf(value, "float32") : value)) };
  }

  /** @param alignment of the offset, in elements. */
  private placed(value: BufferValue, alignment = 1): PlacedBinding {
    const { place, dtype } = this.rootOf(value);
    return { place: place!, offset: (value.offset - (value.offset % alignment)) * bytesOf(dtype) };
  }

  private valueOf(index: number): Value {
    switch (this.recording.graph.nodes[index]!.op) {
      case leafOp:
        return this.leaf(index);
      case scalarOp:
        return this.values.get(index)!;
      default:
        return this.lowerNode(index);
    }
  }

  /**
   * Scalars from the ring are copied to scratch memory before the first step, so that bind groups stay as they are; no
   * step may have that memory before them.
   */
  private takeScalars(): void {
    for (const [index, { op, shape, dtype }] of this.recording.graph.nodes.entries()) {
      if (op !== scalarOp || this.uses[index]! < 0) continue;
      this.node = index;
      const value = this.allocated(shape, dtype);
      this.rootOf(value).uses += 1;
      this.scalarInputs.push({ node: index, target: this.placed(value) });
      this.values.set(index, value);
    }
    this.temporaries = [];
  }

  /** A value of one element in memory that nothing changes until the end, and that is small enough to keep until then. */
  private scalar(value: Value): BufferValue {
    const { dtype } = this.recording.graph.nodes[this.node]!;
    if (value.kind === "buffer") {
      const root = this.rootOf(value);
      const isAlone = root.bytes <= bytesOf(dtype);
      const isKept = root.place?.kind === "output" && (isAlone || !isNarrow(dtype));
      if (root.dtype === dtype && (isKept || (root.place?.kind !== "leaf" && isAlone))) return value;
    }
    const copy = this.allocated(value.shape, dtype);
    copyInto(this, value, copy);
    return copy;
  }

  private inputsOf(index: number): Value[] {
    return this.recording.graph.nodes[index]!.inputs.map((input) => this.values.get(input)!);
  }

  private lowerNode(index: number): Value {
    const node = this.recording.graph.nodes[index]!;
    const lowered: LoweredNode = {
      inputs: this.inputsOf(index),
      attributes: node.attributes,
      scalars: node.scalars.map((_, i) => ({ node: index, index: i })),
      shape: node.shape,
      dtype: computeType(node.dtype),
    };
    return operatorNamed(node.op).lower(this, lowered);
  }

  private leaf(index: number): BufferValue {
    const { shape, dtype, attributes } = this.recording.graph.nodes[index]!;
    const place: Place = { kind: "leaf", node: index };
    const memory = Number(attributes.memory);
    // What the values come from was recorded before: it must not wait for what they are used in.
    if (attributes.arrives === true) for (const group of this.pending) this.settle(group);
    const root: PlannedRoot = {
      shape,
      dtype,
      bytes: byteSize(shape, dtype),
      isShared: attributes.isShared === true,
      place,
      memory,
      start: Number(attributes.offset),
      scratch: null,
      uses: 0,
      group: null,
    };
    this.roots.set(root, root);
    return this.valueIn(root, shape);
  }

  private isOutput(value: Value, index: number): boolean {
    if (value.kind === "constant") return false;
    const { place } = this.rootOf(value);
    return place?.kind === "output" && place.node === index;
  }

  private rootOf(value: BufferValue): PlannedRoot {
    return this.roots.get(value.root)!;
  }

  private clash(read: BufferValue, written: BufferValue): boolean {
    if (read.root === written.root) return true;
    const { memory } = this.rootOf(read);
    return memory !== null && memory === this.rootOf(written).memory;
  }

  /** A kernel's shader reads an operand by its strides and offset, so the copy keeps the whole root's layout. */
  private copyOf(value: BufferValue, dtype: DType = value.root.dtype): BufferValue {
    const length = value.root.bytes / bytesOf(value.root.dtype);
    const whole = { ...value, shape: [length], strides: [1], offset: 0 };
    const copy = this.allocated([length], dtype);
    copyInto(this, whole, copy);
    return { ...value, root: copy.root };
  }

  private drop(root: PlannedRoot): void {
    root.uses -= 1;
    this.recycle(root);
  }

  private recycle(root: PlannedRoot): void {
    if (root.uses > 0 || !root.scratch || !this.roots.delete(root)) return;
    const { size, ordinal } = root.scratch;
    const free = this.free.get(size);
    if (free) free.push(ordinal);
    else this.free.set(size, [ordinal]);
  }
}

/** How often each node's value is used by live nodes; -1 for nodes that neither an output nor an effect needs. */
function countUses({ graph: { nodes }, outputs, scalars }: Recording): Int32Array {
  const survivors = new Set(scalars);
  const uses = new Int32Array(nodes.length).fill(-1);
  for (let index = nodes.length - 1; index >= 0; index--) {
    const node = nodes[index]!;
    const isRoot = outputs.has(index) || survivors.has(index) || hasEffect(node);
    if (uses[index]! < 0 && !isRoot) continue;
    uses[index] = Math.max(uses[index]!, 0);
    for (const input of node.inputs) uses[input] = Math.max(uses[input]!, 0) + 1;
  }
  return uses;
}

/** Whether a root must be stored, for others than these uses. */
function isNeeded(root: PlannedRoot, used: readonly PlannedRoot[]): boolean {
  return root.place?.kind === "output" || root.uses > used.filter((other) => other === root).length;
}

function operandsOf(bindings: readonly BufferValue[], accesses: readonly Access[]): Pick<Step, "reads" | "writes"> {
  const of = (access: Access) =>
    bindings
      .filter((_, i) => accesses[i] === access)
      .map(({ shape, dtype: computed, root }) => {
        const dtype = isNarrow(root.dtype) ? root.dtype : computed;
        return { shape, dtype, bytes: Math.min(byteSize(shape, dtype), root.bytes) };
      });
  return { reads: of("read"), writes: of("write") };
}

/** What members read. */
function loadsOf(members: readonly PendingMember[]): BufferValue[] {
  return members.flatMap(({ compute }) =>
    compute.kind === "call"
      ? compute.operands.flatMap((operand) => (operand.kind === "load" ? [operand.value] : []))
      : [
          ...compute.producer.inputs.slice(compute.prologue ? 1 : 0).map(({ value }) => value),
          ...loadsOf(compute.prologue?.members ?? []),
        ],
  );
}

/** Whether a value is all of its root. */
const isWhole = (value: Value, count: number): boolean =>
  value.kind === "buffer" && value.offset === 0 && value.root.bytes === count * bytesOf(value.root.dtype);

const hasEffect = ({ op }: Node): boolean => op !== leafOp && op !== scalarOp && operatorNamed(op).effect === true;

const byteSize = (shape: Shape, dtype: DType): number => sizeOf(shape) * bytesOf(dtype);

function isContiguous(shape: Shape, strides: readonly number[]): boolean {
  let expected = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    if (shape[d] !== 1 && strides[d] !== expected) return false;
    expected *= shape[d]!;
  }
  return true;
}

function checkedGrid(grid: Grid, kernel: string): Grid {
  if (Math.max(...grid) > 65_535)
    throw new Error(`The kernel ${kernel} asks for ${grid.join(" x ")} workgroups; a dimension takes at most 65535.`);
  return grid;
}

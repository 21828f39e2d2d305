import type { Device, Shader } from "../gpu";
import { bytesOf, type ComputeType, computeType, type DType, isNarrow } from "./dtype";
import { fusedKernel } from "./fusion";
import type { Node } from "./graph";
import { withNarrowReads } from "./narrowFloats";
import { copyInto, fillInto, identity } from "./operators/copy";
import type { ElementFunction } from "./operators/elementwiseKernel";
import { operatorNamed } from "./operators/registry";
import {
  type BufferValue,
  bindingElements,
  innerOffset,
  type KernelCall,
  type LoweredNode,
  type Producer,
  type ScalarReference,
  type Value,
} from "./operators/table";
import { type GroupPlanner, PendingGroups } from "./pendingGroups";
import { type PlacedBinding, Plan, type Step } from "./plan";
import { isContiguous, isNeeded, overlap, type PlannedRoot, PlannedRoots, valueIn } from "./plannedRoots";
import { planStep } from "./planStep";
import { leafOp, type Recording, scalarOp } from "./recording";
import { type Shape, sizeOf } from "./shape";
import type { VariantSite, Variants } from "./variants";
import type { Workspace } from "./workspace";

/** Lowers a recording: only what is needed for its outputs and effects, with scratch memory reused by lifetime. */
export function planRecording(recording: Recording, device: Device, workspace: Workspace, variants: Variants): Plan {
  const planner = new Planner(recording, device, workspace, variants);
  try {
    return planner.plan();
  } catch (reason) {
    planner.release();
    throw reason;
  }
}

class Planner implements GroupPlanner {
  readonly isSoftware: boolean;
  readonly hasHalves: boolean;
  private readonly steps: Step[] = [];
  private readonly values = new Map<number, Value>();
  private readonly roots: PlannedRoots;
  private readonly groups: PendingGroups;
  private temporaries: PlannedRoot[] = [];
  private node = 0;
  private readonly uses: Int32Array;
  /** Nodes of one element that survive in the ring. */
  private readonly ringed: ReadonlySet<number>;
  private readonly scalars = new Map<number, BufferValue>();
  /** Leaves that are to be zero, while no kernel was planned for that: what is added to them may be stored instead. */
  private readonly zeroed = new Set<PlannedRoot>();
  private readonly scalarInputs: { readonly node: number; readonly target: PlacedBinding }[] = [];

  constructor(
    private readonly recording: Recording,
    private readonly device: Device,
    private readonly workspace: Workspace,
    private readonly variants: Variants,
  ) {
    this.isSoftware = device.isSoftware;
    this.hasHalves = device.gpu.features.has("shader-f16");
    this.roots = new PlannedRoots(workspace);
    this.groups = new PendingGroups(this, this.roots);
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
        this.roots.of(value).uses += 1;
      }
      this.values.set(index, value);
      if (value.kind === "buffer") this.roots.of(value).uses += this.uses[index]!;
      for (const root of this.roots.all(this.inputsOf(index))) this.roots.drop(root);
      if (value.kind === "buffer") this.roots.recycle(this.roots.of(value));
      for (const root of this.temporaries) this.roots.recycle(root);
      this.temporaries = [];
    }
    this.groups.settleAll();
    for (const root of this.zeroed) this.fillZeros(root);
    const survivors = this.recording.scalars.map((index) => this.placed(this.scalars.get(index)!));
    return new Plan(this.steps, this.roots.scratches, this.workspace, this.scalarInputs, survivors);
  }

  /** Gives up a plan that could not be finished. */
  release(): void {
    this.roots.release();
  }

  result(): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    return isNarrow(dtype) ? this.allocate(shape, "float32") : this.home();
  }

  allocate(shape: Shape, dtype: ComputeType): BufferValue {
    return this.allocated(shape, dtype);
  }

  private allocated(shape: Shape, dtype: DType): BufferValue {
    const root = this.roots.add(shape, dtype, null);
    this.place(root);
    this.temporaries.push(root);
    return valueIn(root, shape);
  }

  place(root: PlannedRoot): void {
    this.roots.place(root, this.recording.graph.nodes[this.node]!.op);
  }

  /** Memory for the node's result, of its type. */
  private home(): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    if (!this.recording.outputs.has(this.node)) return this.allocated(shape, dtype);
    return valueIn(this.roots.add(shape, dtype, { kind: "output", node: this.node }), shape);
  }

  /** The node's value, rounded where its operator computed in a wider type than the node's. */
  private asStored(value: Value): Value {
    const { dtype } = this.recording.graph.nodes[this.node]!;
    if (value.kind === "constant" || !isNarrow(dtype) || this.roots.of(value).dtype === dtype) return value;
    return this.elementwise(identity, [value], []);
  }

  variant(site: VariantSite): string {
    return this.variants.choose(site);
  }

  dense(value: Value): BufferValue {
    if (value.kind === "constant") return this.buffer(value);
    if (innerOffset(value) === 0 && isContiguous(value.shape, value.strides)) return value;
    const copy = this.allocated(value.shape, this.roots.of(value).dtype);
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
    for (const value of call.bindings) this.groups.settle(this.roots.of(value).group);
    for (const [i, value] of call.bindings.entries())
      if (call.shader.bindings[i] === "write") {
        const { memory, dtype } = this.roots.of(value);
        if (isNarrow(dtype)) throw new Error(`The kernel ${call.shader.name} can't write ${dtype}.`);
        this.groups.settleReaders(memory);
      }
    this.emit(call);
  }

  elementwise(f: ElementFunction, operands: readonly Value[], scalars: readonly ScalarReference[]): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    if (sizeOf(shape) === 0) return this.result();
    const value = this.unplaced(shape, dtype);
    const target = this.roots.of(value);
    const members = this.groups.joined(f, operands, scalars, shape, target, true);
    this.groups.wait({ count: sizeOf(shape), members });
    return value;
  }

  produce(producer: Producer): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    const count = sizeOf(shape);
    if (count === 0) return this.result();
    const value = this.unplaced(shape, dtype);
    this.groups.wait({ count, members: [this.groups.producerMember(producer, dtype, this.roots.of(value))] });
    return value;
  }

  produceInto(producer: Producer, out: BufferValue): void {
    const member = this.groups.producerMember(producer, out.dtype, this.roots.of(out));
    const group = { count: sizeOf(out.shape), members: [member] };
    this.emit(fusedKernel(group, [{ member, value: out, isUpdated: false, keepsPadding: false }]));
    this.groups.unclaim(group.members);
  }

  zero(target: BufferValue): void {
    const root = this.roots.of(target);
    this.groups.settleReaders(root.memory);
    this.fillOverlapping(root);
    this.zeroed.add(root);
  }

  takeZeroed(root: PlannedRoot): boolean {
    return this.zeroed.delete(root);
  }

  /** Plans the fills of zeroed leaves that share elements with a root, before they are used. */
  private fillOverlapping(root: PlannedRoot): void {
    for (const zeroed of this.zeroed) if (overlap(zeroed, root)) this.fillZeros(zeroed);
  }

  private fillZeros(root: PlannedRoot): void {
    this.zeroed.delete(root);
    fillInto(this, 0, valueIn(root, root.shape));
  }

  store(f: ElementFunction, operands: readonly Value[], out: BufferValue): boolean {
    if (innerOffset(out) !== 0 || !isContiguous(out.shape, out.strides)) return false;
    const target = this.roots.of(out);
    const members = this.groups.joined(f, operands, [], out.shape, target, !isNarrow(target.dtype));
    const count = sizeOf(out.shape);
    const used = this.roots.all(operands);
    const needed = members.slice(0, -1).filter(({ target: root }) => isNeeded(root, used));
    this.groups.settleReaders(target.memory);
    this.groups.emitGroup({ count, members }, needed, [
      {
        member: members.at(-1)!,
        value: out,
        isUpdated: true,
        keepsPadding: target.isShared || target.bytes !== count * bytesOf(target.dtype),
      },
    ]);
    for (const member of members.slice(0, -1)) member.target.group = null;
    this.groups.unclaim(members);
    return true;
  }

  /** The node's result, whose memory is found when its kernel is planned. */
  private unplaced(shape: Shape, dtype: DType): BufferValue {
    if (this.recording.outputs.has(this.node)) return this.home();
    return valueIn(this.roots.add(shape, dtype, null), shape);
  }

  emit(call: KernelCall): void {
    const { shader, bindings, grid } = call;
    if (grid[0] * grid[1] * grid[2] === 0) return;
    for (const value of bindings) this.fillOverlapping(this.roots.of(value));
    const apart = bindings.map((value, i) =>
      shader.bindings[i] === "read" &&
      bindings.some((other, j) => shader.bindings[j] === "write" && this.clash(value, other))
        ? this.copyOf(value)
        : value,
    );
    const { readable, values } = this.widened(shader, apart);
    const placed = values.map((value, i) => this.placed(value, bindingElements(apart[i]!.root)));
    this.steps.push(planStep(call, this.device.pipelines.kernel(readable), placed, this.roots.held));
  }

  /** A shader and what it reads, where some of that is stored as narrow floats: it converts them, or gets copies. */
  private widened(
    shader: Shader,
    values: readonly BufferValue[],
  ): { readable: Shader; values: readonly BufferValue[] } {
    const types = values.map((value, i) => {
      const { dtype } = this.roots.of(value);
      return shader.bindings[i] === "read" && isNarrow(dtype) ? dtype : null;
    });
    if (types.every((type) => type === null)) return { readable: shader, values };
    const readable = withNarrowReads(shader, types, this.hasHalves);
    if (readable) return { readable, values };
    return { readable: shader, values: values.map((value, i) => (types[i] ? this.copyOf(value, "float32") : value)) };
  }

  /** @param alignment of the offset, in elements. */
  private placed(value: BufferValue, alignment = 1): PlacedBinding {
    const { place, dtype } = this.roots.of(value);
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
      this.roots.of(value).uses += 1;
      this.scalarInputs.push({ node: index, target: this.placed(value) });
      this.values.set(index, value);
    }
    this.temporaries = [];
  }

  /** A value of one element in memory that nothing changes until the end, and that is small enough to keep until then. */
  private scalar(value: Value): BufferValue {
    const { dtype } = this.recording.graph.nodes[this.node]!;
    if (value.kind === "buffer") {
      const root = this.roots.of(value);
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
    // What the values come from was recorded before: it must not wait for what they are used in.
    if (attributes.arrives === true) this.groups.settleAll();
    const root = this.roots.add(
      shape,
      dtype,
      { kind: "leaf", node: index },
      {
        isShared: attributes.isShared === true,
        memory: Number(attributes.memory),
        start: Number(attributes.offset),
      },
    );
    return valueIn(root, shape);
  }

  private isOutput(value: Value, index: number): boolean {
    if (value.kind === "constant") return false;
    const { place } = this.roots.of(value);
    return place?.kind === "output" && place.node === index;
  }

  private clash(read: BufferValue, written: BufferValue): boolean {
    if (read.root === written.root) return true;
    const { memory } = this.roots.of(read);
    return memory !== null && memory === this.roots.of(written).memory;
  }

  /** A kernel's shader reads an operand by its strides and offset, so the copy keeps the whole root's layout. */
  private copyOf(value: BufferValue, dtype: DType = value.root.dtype): BufferValue {
    const length = value.root.bytes / bytesOf(value.root.dtype);
    const whole = { ...value, shape: [length], strides: [1], offset: 0 };
    const copy = this.allocated([length], dtype);
    copyInto(this, whole, copy);
    return { ...value, root: copy.root };
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

const hasEffect = ({ op }: Node): boolean => op !== leafOp && op !== scalarOp && operatorNamed(op).effect === true;

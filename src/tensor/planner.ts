import { type Device, type Grid, sizeClass } from "../gpu";
import { bytesPerElement, type DType } from "./dtype";
import type { Node } from "./graph";
import { copyInto } from "./operators/copy";
import { operatorNamed } from "./operators/registry";
import type { BufferValue, KernelCall, LoweredNode, Lowering, Root, Value } from "./operators/table";
import { encodeWord, type Place, type PlacedBinding, Plan, type Step, uniformWords } from "./plan";
import { leafOp, type Recording, scalarOp } from "./recording";
import { contiguousStrides, describeShape, type Shape, sizeOf } from "./shape";
import type { Scratch, Workspace } from "./workspace";

interface PlannedRoot extends Root {
  readonly place: Place;
  /** Which memory it lies in, for leaves: kernels can't read and write one memory at once. */
  readonly memory: number | null;
  readonly scratch: { readonly size: number; readonly ordinal: number } | null;
  /** Uses by nodes still to be lowered. */
  uses: number;
}

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
  private readonly scalarInputs: { readonly node: number; readonly target: PlacedBinding }[] = [];

  constructor(
    private readonly recording: Recording,
    private readonly device: Device,
    private readonly workspace: Workspace,
  ) {
    this.isSoftware = device.isSoftware;
    this.uses = countUses(recording);
    this.ringed = new Set(recording.scalars);
  }

  plan(): Plan {
    const { nodes } = this.recording.graph;
    this.takeScalars();
    for (const [index, node] of nodes.entries()) {
      if (this.uses[index]! < 0) continue;
      this.node = index;
      let value = this.valueOf(index);
      if (this.recording.outputs.has(index) && !this.isOutput(value, index)) {
        const output = this.result();
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
      for (const input of node.inputs) {
        const used = this.values.get(input)!;
        if (used.kind === "buffer") this.drop(this.rootOf(used));
      }
      if (value.kind === "buffer") this.recycle(this.rootOf(value));
      for (const root of this.temporaries) this.recycle(root);
      this.temporaries = [];
    }
    const survivors = this.recording.scalars.map((index) => this.placed(this.scalars.get(index)!));
    return new Plan(this.steps, this.scratches, this.workspace, this.scalarInputs, survivors);
  }

  /** Gives up a plan that could not be finished. */
  release(): void {
    this.workspace.release(this.scratches);
  }

  result(): BufferValue {
    const { shape, dtype } = this.recording.graph.nodes[this.node]!;
    if (!this.recording.outputs.has(this.node)) return this.allocate(shape, dtype);
    const place: Place = { kind: "output", node: this.node };
    const root: PlannedRoot = { bytes: byteSize(shape), isShared: false, place, memory: null, scratch: null, uses: 0 };
    this.roots.set(root, root);
    return { kind: "buffer", root, shape, dtype, strides: contiguousStrides(shape), offset: 0 };
  }

  allocate(shape: Shape, dtype: DType): BufferValue {
    const bytes = byteSize(shape);
    const size = sizeClass(bytes);
    let ordinal = this.free.get(size)?.pop();
    if (ordinal === undefined) {
      ordinal = this.taken.get(size) ?? 0;
      this.taken.set(size, ordinal + 1);
      this.scratches.push(
        this.workspace.acquire(
          size,
          ordinal,
          `${this.recording.graph.nodes[this.node]!.op}: a tensor of shape ${describeShape(shape)}`,
        ),
      );
    }
    const { slice } = this.workspace.peek(size, ordinal);
    const place: Place = { kind: "scratch", slice };
    const root: PlannedRoot = { bytes, isShared: false, place, memory: null, scratch: { size, ordinal }, uses: 0 };
    this.roots.set(root, root);
    this.temporaries.push(root);
    return { kind: "buffer", root, shape, dtype, strides: contiguousStrides(shape), offset: 0 };
  }

  dense(value: Value): BufferValue {
    if (value.kind === "buffer" && value.offset % 64 === 0 && isContiguous(value.shape, value.strides)) return value;
    const copy = this.allocate(value.shape, value.dtype);
    copyInto(this, value, copy);
    return copy;
  }

  buffer(value: Value): BufferValue {
    if (value.kind === "buffer") return value;
    const filled = this.allocate(value.shape, value.dtype);
    copyInto(this, value, filled);
    return filled;
  }

  dispatch({ shader, bindings, uniforms, grid, work }: KernelCall): void {
    if (grid[0] * grid[1] * grid[2] === 0) return;
    const apart = bindings.map((value, i) =>
      shader.bindings[i] === "read" &&
      bindings.some((other, j) => shader.bindings[j] === "write" && this.clash(value, other))
        ? this.copyOf(value)
        : value,
    );
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
      kernel: this.device.pipelines.kernel(shader),
      bindings: apart.map((value) => this.placed(value, 64)),
      uniforms: block,
      patches,
      grid: checkedGrid(grid, shader.name),
      work,
      slices: [],
      bindGroup: null,
    });
  }

  /** @param alignment of the offset, in elements. */
  private placed(value: BufferValue, alignment = 1): PlacedBinding {
    const offset = (value.offset - (value.offset % alignment)) * bytesPerElement;
    return { place: this.rootOf(value).place, offset };
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
      const value = this.allocate(shape, dtype);
      this.rootOf(value).uses += 1;
      this.scalarInputs.push({ node: index, target: this.placed(value) });
      this.values.set(index, value);
    }
    this.temporaries = [];
  }

  /** A value of one element in memory that nothing changes until the end, and that is small enough to keep until then. */
  private scalar(value: Value): BufferValue {
    if (value.kind === "buffer") {
      const { place, bytes } = this.rootOf(value);
      if (place.kind === "output" || (place.kind === "scratch" && bytes <= bytesPerElement)) return value;
    }
    const copy = this.allocate(value.shape, value.dtype);
    copyInto(this, value, copy);
    return copy;
  }

  private lowerNode(index: number): Value {
    const node = this.recording.graph.nodes[index]!;
    const lowered: LoweredNode = {
      inputs: node.inputs.map((input) => this.values.get(input)!),
      attributes: node.attributes,
      scalars: node.scalars.map((_, i) => ({ node: index, index: i })),
      shape: node.shape,
      dtype: node.dtype,
    };
    return operatorNamed(node.op).lower(this, lowered);
  }

  private leaf(index: number): BufferValue {
    const { shape, dtype, attributes } = this.recording.graph.nodes[index]!;
    const place: Place = { kind: "leaf", node: index };
    const memory = Number(attributes.memory);
    const root: PlannedRoot = {
      bytes: byteSize(shape),
      isShared: attributes.isShared === true,
      place,
      memory,
      scratch: null,
      uses: 0,
    };
    this.roots.set(root, root);
    return { kind: "buffer", root, shape, dtype, strides: contiguousStrides(shape), offset: 0 };
  }

  private isOutput(value: Value, index: number): boolean {
    if (value.kind === "constant") return false;
    const { place } = this.rootOf(value);
    return place.kind === "output" && place.node === index;
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
  private copyOf(value: BufferValue): BufferValue {
    const length = value.root.bytes / bytesPerElement;
    const whole = { ...value, shape: [length], strides: [1], offset: 0 };
    const copy = this.allocate([length], value.dtype);
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

const hasEffect = ({ op }: Node): boolean => op !== leafOp && op !== scalarOp && operatorNamed(op).effect === true;

const byteSize = (shape: Shape): number => sizeOf(shape) * bytesPerElement;

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

import { sizeClass } from "../gpu";
import { bytesOf, bytesPerElement, computeType, type DType } from "./dtype";
import type { Group, Member, Operand } from "./fusion";
import type { BufferValue, Root, Value } from "./operators/table";
import type { Place } from "./plan";
import { contiguousStrides, describeShape, type Shape, sizeOf } from "./shape";
import type { Scratch, Workspace } from "./workspace";

/** The planner's view of the memory behind values. */
export interface PlannedRoot extends Root {
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

export type PendingGroup = Group<PlannedRoot>;
export type PendingMember = Member<PlannedRoot>;
export type PendingOperand = Operand<PlannedRoot>;

/** What is known of a root's memory where it is a leaf's. */
type InLeaf = Pick<PlannedRoot, "isShared" | "memory" | "start">;

/** The memories of a plan's values while it is made: scratch memory is used again as soon as nothing needs it. */
export class PlannedRoots {
  readonly scratches: Scratch[] = [];
  /** By size class: how many buffers were taken, and which are free. */
  private readonly taken = new Map<number, number>();
  private readonly free = new Map<number, number[]>();
  /** The bytes of the roots that have scratch memory. */
  held = 0;
  /** A root that was recycled is gone. */
  private readonly roots = new Map<Root, PlannedRoot>();

  constructor(private readonly workspace: Workspace) {}

  /** A new one, without scratch memory so far. */
  add(
    shape: Shape,
    dtype: DType,
    place: Place | null,
    inLeaf: InLeaf = { isShared: false, memory: null, start: 0 },
  ): PlannedRoot {
    const bytes = byteSize(shape, dtype);
    const root: PlannedRoot = { shape, dtype, bytes, place, ...inLeaf, scratch: null, uses: 0, group: null };
    this.roots.set(root, root);
    return root;
  }

  of(value: BufferValue): PlannedRoot {
    return this.roots.get(value.root)!;
  }

  /** The roots of values, one for each use. */
  all(values: readonly Value[]): PlannedRoot[] {
    return values.flatMap((value) => (value.kind === "buffer" ? [this.of(value)] : []));
  }

  /**
   * Finds scratch memory for a root.
   * @param operator names what it is for.
   */
  place(root: PlannedRoot, operator: string): void {
    const size = sizeClass(root.bytes);
    let ordinal = this.free.get(size)?.pop();
    if (ordinal === undefined) {
      ordinal = this.taken.get(size) ?? 0;
      this.taken.set(size, ordinal + 1);
      this.scratches.push(
        this.workspace.acquire(size, ordinal, `${operator}: a tensor of shape ${describeShape(root.shape)}`),
      );
    }
    root.place = { kind: "scratch", slice: this.workspace.peek(size, ordinal).slice };
    root.scratch = { size, ordinal };
    this.held += root.bytes;
  }

  /** Ends one use. */
  drop(root: PlannedRoot): void {
    root.uses -= 1;
    this.recycle(root);
  }

  /** Lets others have its memory, once nothing uses it. */
  recycle(root: PlannedRoot): void {
    if (root.uses > 0 || !root.scratch || !this.roots.delete(root)) return;
    const { size, ordinal } = root.scratch;
    this.held -= root.bytes;
    const free = this.free.get(size);
    if (free) free.push(ordinal);
    else this.free.set(size, [ordinal]);
  }

  /** Gives all scratch memory back. */
  release(): void {
    this.workspace.release(this.scratches);
  }
}

/** All of a root as a value. */
export function valueIn(root: Root, shape: Shape): BufferValue {
  const dtype = computeType(root.dtype);
  return { kind: "buffer", root, shape, dtype, strides: contiguousStrides(shape), offset: 0 };
}

/** Whether a root must be stored, for others than these uses. */
export function isNeeded(root: PlannedRoot, used: readonly PlannedRoot[]): boolean {
  return root.place?.kind === "output" || root.uses > used.filter((other) => other === root).length;
}

/** Whether two roots lie in one leaf's memory and have words in common. */
export function overlap(a: PlannedRoot, b: PlannedRoot): boolean {
  const end = ({ start, bytes }: PlannedRoot) => start + bytes / bytesPerElement;
  return a.memory !== null && a.memory === b.memory && a.start < end(b) && b.start < end(a);
}

/** Whether a value is all of its root. */
export const isWhole = (value: Value, count: number): boolean =>
  value.kind === "buffer" && value.offset === 0 && value.root.bytes === count * bytesOf(value.root.dtype);

export const byteSize = (shape: Shape, dtype: DType): number => sizeOf(shape) * bytesOf(dtype);

export function isContiguous(shape: Shape, strides: readonly number[]): boolean {
  let expected = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    if (shape[d] !== 1 && strides[d] !== expected) return false;
    expected *= shape[d]!;
  }
  return true;
}

import { computeType, type DType } from "./dtype";
import { fits, fusedKernel, isLinear, type Prologue, type Stored, stepsOf, storesSingly } from "./fusion";
import { copyInto } from "./operators/copy";
import { broadcastStrides, type ElementFunction } from "./operators/elementwiseKernel";
import type { BufferValue, KernelCall, Lowering, Producer, ScalarReference, Value } from "./operators/table";
import {
  isNeeded,
  isWhole,
  type PendingGroup,
  type PendingMember,
  type PendingOperand,
  type PlannedRoot,
  type PlannedRoots,
  valueIn,
} from "./plannedRoots";
import { type Shape, sizeOf } from "./shape";

/** What the groups need of the planner that they are part of. */
export interface GroupPlanner extends Lowering {
  /** Whether the device has `shader-f16`. */
  readonly hasHalves: boolean;
  emit(call: KernelCall): void;
  /** Finds scratch memory for a root. */
  place(root: PlannedRoot): void;
  /** Whether a leaf is to be zero before what is added to it; if so, that is done by storing instead. */
  takeZeroed(root: PlannedRoot): boolean;
}

/** Groups of calls whose kernels are not planned yet: more may join them. */
export class PendingGroups {
  private readonly pending = new Set<PendingGroup>();

  constructor(
    private readonly planner: GroupPlanner,
    private readonly roots: PlannedRoots,
  ) {}

  /**
   * The members of the groups that compute the operands, as far as they walk alike and fit one kernel, and behind them
   * the call of `f`. The groups wait no longer.
   * @param followsProducers whether a producer may be among them.
   */
  joined(
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
    for (const { value, joins } of walked)
      if (value.kind === "buffer" && !joins) this.settle(this.roots.of(value).group);
    const groups = new Set<PendingGroup>();
    let hasProducer = false;
    for (const { value } of walked) {
      const group = value.kind === "buffer" ? this.roots.of(value).group : null;
      if (!group || groups.has(group)) continue;
      const producing = group.members[0]!.compute.kind === "producer";
      if (producing && (hasProducer || !followsProducers)) {
        this.settle(group);
        continue;
      }
      groups.add(group);
      hasProducer ||= producing;
    }
    const used = this.roots.all(operands);
    const first: PendingOperand =
      f.updates && this.planner.takeZeroed(target)
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
        const root = this.roots.of(value);
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

  /** A producer as the first member of a group. */
  producerMember(producer: Producer, dtype: DType, target: PlannedRoot): PendingMember {
    const prologue = this.prologueOf(producer);
    for (const [i, { value }] of producer.inputs.entries())
      if (i > 0 || !prologue) this.settle(this.roots.of(value).group);
    const member: PendingMember = { compute: { kind: "producer", producer, prologue }, dtype, target };
    // A prologue's loads are claimed already.
    for (const { value } of producer.inputs.slice(prologue ? 1 : 0)) this.roots.of(value).uses += 1;
    return member;
  }

  /** The chain behind a producer's first input, where nothing else needs it. */
  private prologueOf(producer: Producer): Prologue<PlannedRoot> | null {
    const first = producer.inputs[0];
    if (!producer.loadsFirst || !first || first.value.offset !== 0) return null;
    const root = this.roots.of(first.value);
    const { group } = root;
    if (!group || group.members[0]!.compute.kind === "producer") return null;
    if (group.members.some(({ target }) => isNeeded(target, [root]))) return null;
    if (!fits(group.members, producer.inputs.length + 2)) return null;
    this.pending.delete(group);
    for (const { target } of group.members) target.group = null;
    return { members: group.members, result: group.members.find(({ target }) => target === root)! };
  }

  /** Lets a group wait for others to join it. */
  wait(group: PendingGroup): void {
    this.pending.add(group);
    for (const { target } of group.members) target.group = group;
  }

  /** Plans the kernel of a group. */
  settle(group: PendingGroup | null): void {
    if (!group || !this.pending.delete(group)) return;
    const needed = group.members.filter(({ target }) => isNeeded(target, []));
    for (const { target } of group.members) target.group = null;
    if (needed.length > 0) this.emitGroup(group, needed);
    this.unclaim(group.members);
  }

  /**
   * Emits the kernel of a group that stores these members. Behind a producer without quads, what can't be stored singly
   * is stored as float32, and rounded by a kernel of its own.
   */
  emitGroup(group: PendingGroup, needed: readonly PendingMember[], further: readonly Stored<PlannedRoot>[] = []): void {
    const { compute } = group.members[0]!;
    const storesOne = compute.kind === "producer" && !compute.producer.quadCode;
    const wide: { readonly from: BufferValue; readonly to: BufferValue }[] = [];
    for (const member of needed) this.placeMember(member);
    const stored = needed.map((member): Stored<PlannedRoot> => {
      const { target } = member;
      const to = valueIn(target, target.shape);
      if (!storesOne || storesSingly(target.dtype, this.planner.hasHalves))
        return { member, value: to, isUpdated: false, keepsPadding: false };
      const from = this.planner.allocate(target.shape, "float32");
      wide.push({ from, to });
      return { member, value: from, isUpdated: false, keepsPadding: false };
    });
    this.planner.emit(fusedKernel(group, [...stored, ...further]));
    for (const { from, to } of wide) copyInto(this.planner, from, to);
  }

  /** Plans the kernels of groups that read a memory, before something writes to it. */
  settleReaders(memory: number | null): void {
    if (memory === null) return;
    for (const group of this.pending)
      if (loadsOf(group.members).some((value) => this.roots.of(value).memory === memory)) this.settle(group);
  }

  private placeMember({ target }: PendingMember): void {
    if (!target.place) this.planner.place(target);
  }

  /** Keeps what members load until their kernel is planned. */
  private claim(members: readonly PendingMember[]): void {
    for (const value of loadsOf(members)) this.roots.of(value).uses += 1;
  }

  /** Ends that. */
  unclaim(members: readonly PendingMember[]): void {
    for (const value of loadsOf(members)) this.roots.drop(this.roots.of(value));
  }

  /** Plans the kernels of all groups. */
  settleAll(): void {
    for (const group of this.pending) this.settle(group);
  }
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

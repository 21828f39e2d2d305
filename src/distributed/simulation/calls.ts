import { recursiveDoubling } from "../algorithms/doubling";
import { ringAllReduce } from "../algorithms/ring";
import type { ElementTypeName } from "../elementType";
import { Float16Bits } from "../float16";
import { allGatherObject } from "../objects";
import type { ProcessGroup } from "../processGroup";
import { combineFor, type ReduceOp } from "../reduceOp";
import { typeOf, type Values } from "../values";
import type { Work } from "../work";

export const callKinds = [
  "allReduce",
  "ring",
  "doubling",
  "reduce",
  "broadcast",
  "allGather",
  "reduceScatter",
  "allToAll",
  "gather",
  "scatter",
  "barrier",
  "shift",
  "objects",
] as const;

/** One call that all ranks of a group make. */
export interface Call {
  readonly kind: (typeof callKinds)[number];
  readonly index: number;
  readonly type: Exclude<ElementTypeName, "bool">;
  readonly op: ReduceOp;
  readonly length: number;
  /** Within the group. */
  readonly root: number;
}

/** A call under way on a rank, and what is wrong with its result; null for nothing. */
export interface Begun {
  readonly works: readonly Work[];
  readonly check: () => string | null;
}

export function describeCall({ kind, type, op, length, root }: Call): string {
  return `${kind} ${op} ${type}[${length}] root ${root}`;
}

/** Whether the operation is defined for the call's type. */
export function isDefined(op: ReduceOp, type: Call["type"]): boolean {
  return combineFor(op, type.startsWith("float") ? "float" : "integer") !== null;
}

/** Small integers, exact in every type. */
const value = (call: Call, rank: number, index: number) => (rank * 7 + index * 3 + call.index) % 11;

function make(type: Call["type"], numbers: readonly number[]): Values {
  switch (type) {
    case "float32":
      return Float32Array.from(numbers);
    case "float16":
      return Float16Bits.from(numbers);
    case "int32":
      return Int32Array.from(numbers);
    case "uint32":
      return Uint32Array.from(numbers);
    case "uint8":
      return Uint8Array.from(numbers);
  }
}

function numbersOf(values: Values): number[] {
  if (values instanceof Float16Bits) return [...values.toFloat32()];
  if (ArrayBuffer.isView(values) && "values" in values) return Array.from(values);
  throw new TypeError(`A simulation has no ${typeOf(values).name} of this form.`);
}

function combine(op: ReduceOp, numbers: readonly number[], worldSize: number): number {
  switch (op) {
    case "sum":
      return numbers.reduce((a, b) => a + b);
    case "avg":
      return Math.fround(numbers.reduce((a, b) => a + b) / worldSize);
    case "prod":
      return numbers.reduce((a, b) => a * b);
    case "min":
      return Math.min(...numbers);
    case "max":
      return Math.max(...numbers);
    case "band":
      return numbers.reduce((a, b) => a & b);
    case "bor":
      return numbers.reduce((a, b) => a | b);
    case "bxor":
      return numbers.reduce((a, b) => a ^ b);
  }
}

/** Begins a call on a rank of a group. */
export function beginCall(call: Call, group: ProcessGroup): Begun {
  const { kind, type, op, length, root } = call;
  const { rank, worldSize } = group;
  const ranks = Array.from({ length: worldSize }, (_, other) => other);
  const range = (count: number, from = 0) => Array.from({ length: count }, (_, index) => from + index);
  const given = (from: number, count = length) => range(count).map((index) => value(call, from, index));
  const empty = (count = length) => make(type, new Array<number>(count).fill(0));
  const reduced = (from: number, to: number) =>
    range(to - from, from).map((index) =>
      combine(
        op,
        ranks.map((other) => value(call, other, index)),
        worldSize,
      ),
    );
  const expecting = (works: readonly Work[], results: readonly (readonly [Values, readonly number[]])[]): Begun => ({
    works,
    check: () => {
      for (const [got, wanted] of results) {
        // Means are rounded as the type rounds.
        const rounded = numbersOf(make(type, wanted));
        const numbers = numbersOf(got);
        const at = rounded.findIndex((number, index) => !Object.is(number, numbers[index]));
        if (at >= 0) return `element ${at} is ${numbers[at]}, and should be ${rounded[at]}`;
      }
      return null;
    },
  });
  const own = make(type, given(rank));
  const isRoot = rank === root;
  switch (kind) {
    case "allReduce":
      return expecting([group.allReduce(own, op)], [[own, reduced(0, length)]]);
    case "ring":
      return expecting([group.allReduce(own, op, { algorithm: ringAllReduce })], [[own, reduced(0, length)]]);
    case "doubling":
      return expecting([group.allReduce(own, op, { algorithm: recursiveDoubling })], [[own, reduced(0, length)]]);
    case "reduce":
      return expecting([group.reduce(own, root, op)], [[own, isRoot ? reduced(0, length) : given(rank)]]);
    case "broadcast":
      return expecting([group.broadcast(own, root)], [[own, given(root)]]);
    case "allGather": {
      const whole = empty(length * worldSize);
      return expecting([group.allGatherIntoTensor(whole, own)], [[whole, ranks.flatMap((other) => given(other))]]);
    }
    case "reduceScatter": {
      const input = make(type, given(rank, length * worldSize));
      const part = empty();
      return expecting(
        [group.reduceScatterTensor(part, input, op)],
        [[part, reduced(rank * length, (rank + 1) * length)]],
      );
    }
    case "allToAll": {
      const outputs = ranks.map((from) => empty(length + from + 2 * rank));
      const inputs = ranks.map((to) => make(type, given(rank, length + rank + 2 * to)));
      return expecting(
        [group.allToAll(outputs, inputs)],
        outputs.map((output, from) => [output, given(from, length + from + 2 * rank)] as const),
      );
    }
    case "gather": {
      const outputs = isRoot ? ranks.map(() => empty()) : null;
      return expecting(
        [group.gather(own, outputs, root)],
        (outputs ?? []).map((output, from) => [output, given(from)] as const),
      );
    }
    case "scatter": {
      const part = empty();
      const inputs = isRoot ? ranks.map((to) => make(type, given(to))) : null;
      return expecting([group.scatter(part, inputs, root)], [[part, given(rank)]]);
    }
    case "barrier":
      return expecting([group.barrier()], []);
    case "shift": {
      if (worldSize === 1) return expecting([], []);
      const left = (rank + worldSize - 1) % worldSize;
      const received = empty();
      const works = group.batchIsendIrecv([
        { op: "isend", values: own, peer: (rank + 1) % worldSize, tag: call.index },
        { op: "irecv", values: received, peer: left, tag: call.index },
      ]);
      return expecting(works, [[received, given(left)]]);
    }
    case "objects": {
      const objects: unknown[] = [];
      const text = (from: number) => `${from}:${"x".repeat(length * from)}`;
      return {
        works: [allGatherObject(group, objects, text(rank))],
        check: () =>
          ranks.every((from) => objects[from] === text(from)) ? null : `the objects are ${JSON.stringify(objects)}`,
      };
    }
  }
}

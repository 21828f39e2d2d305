import { describe, expect, test } from "vitest";
import { fromHalf, toHalf } from "../../base/float16";
import { seededRandom } from "../../base/seededRandom";
import { Collective } from "../collective";
import { Elements, type ElementTypeName, elementTypes } from "../elementType";
import { combineFor, type ReduceOp, reduceOps } from "../reduceOp";
import { reductionOf } from "../reduction";
import { inSequence, type Schedule } from "../schedule";
import { boundariesOf, evenBoundaries, type Place } from "./boundaries";
import { allToAllDirect, directAllGather, directReduceScatter, gatherTo, scatterFrom } from "./direct";
import { dissemination, recursiveDoubling } from "./doubling";
import { ringAllGather, ringAllReduce, ringBroadcast, ringReduce, ringReduceScatter } from "./ring";
import { treeBroadcast, treeReduce } from "./tree";

interface Member {
  readonly input: Elements;
  readonly output: Elements;
}

interface Message {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
  readonly payload: Uint8Array<ArrayBuffer>;
}

interface Run {
  readonly sentBytes: readonly number[];
  readonly chunks: number;
}

/**
 * Runs all members to the end. Which link's oldest message comes next follows from the seed. A message's bytes are taken when it comes, so that
 * a member which changes them too early is found out.
 */
function run(
  members: readonly Member[],
  scheduleOf: (place: Place) => Schedule,
  { op = "sum", chunkBytes = 16, seed = 1 }: { op?: ReduceOp; chunkBytes?: number; seed?: number } = {},
): Run {
  const worldSize = members.length;
  const random = seededRandom(seed);
  const type = members[0]!.input.type;
  const reduction = combineFor(op, type.kind) === null ? null : reductionOf(op, type, worldSize);
  const links = new Map<number, Message[]>();
  const waiting: Message[][] = [];
  const sentBytes = new Array<number>(worldSize).fill(0);
  let chunks = 0;
  const send = (from: number) => (to: number, offset: number, payload: Uint8Array<ArrayBuffer>) => {
    const key = from * worldSize + to;
    const queue = links.get(key) ?? [];
    links.set(key, queue);
    if (queue.length === 0) waiting.push(queue);
    queue.push({ from, to, offset, payload });
    sentBytes[from]! += payload.length;
    chunks += 1;
  };
  const collectives = members.map(
    (member, rank) => new Collective({ ...member, schedule: scheduleOf({ rank, worldSize }), reduction, chunkBytes }),
  );
  for (const [rank, collective] of collectives.entries()) collective.start(send(rank));
  while (waiting.length > 0) {
    const index = Math.floor(random() * waiting.length);
    const queue = waiting[index]!;
    const { from, to, offset, payload } = queue.shift()!;
    if (queue.length === 0) {
      waiting[index] = waiting.at(-1)!;
      waiting.pop();
    }
    const problem = collectives[to]!.receive(from, offset, payload.slice(), send(to));
    if (problem !== null) throw new Error(`Rank ${to}: rank ${problem.from} ${problem.sentence}`);
  }
  for (const { done, waitingFor, received, total } of collectives)
    if (!done || waitingFor.length > 0 || received !== total) throw new Error("A member isn't done.");
  return { sentBytes, chunks };
}

const worlds = [1, 2, 3, 4, 5, 6, 7, 8];
const lengths = [...Array.from({ length: 18 }, (_, length) => length), 997];

/** Small integers, so that sums and products are exact in every type. */
function valueAt(rank: number, index: number, op: ReduceOp): number {
  return op === "prod" ? 1 + ((rank + index) % 2) : (rank * 7 + index * 3) % 11;
}

function elementsOf(name: ElementTypeName, length: number, value: (index: number) => number): Elements {
  const elements = Elements.allocate(elementTypes[name], length);
  for (let index = 0; index < length; index += 1) {
    const number = name === "bool" ? value(index) % 2 : value(index);
    elements.array[index] = name === "float16" ? toHalf(number) : number;
  }
  return elements;
}

function numbersOf({ type, array }: Elements): number[] {
  return Array.from(array, type.name === "float16" ? fromHalf : Number);
}

const scalar: Readonly<Record<ReduceOp, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((a, b) => a + b),
  avg: (values) => values.reduce((a, b) => a + b) / values.length,
  prod: (values) => values.reduce((a, b) => a * b),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  band: (values) => values.reduce((a, b) => a & b),
  bor: (values) => values.reduce((a, b) => a | b),
  bxor: (values) => values.reduce((a, b) => a ^ b),
};

/** As expect(a).toEqual(b), which takes long for many small lists. */
function same(a: readonly number[], b: readonly number[] | undefined, what = ""): void {
  if (b === undefined || a.length !== b.length || a.some((value, index) => !Object.is(value, b[index])))
    expect(a, what).toEqual(b);
}

/** What every rank should get, rounded once as the type rounds. */
function expected(
  op: ReduceOp,
  name: ElementTypeName,
  inputs: readonly Elements[],
  from: number,
  to: number,
): number[] {
  const numbers = inputs.map(numbersOf);
  const result = elementsOf(name, to - from, (index) => {
    const value = scalar[op](numbers.map((values) => values[from + index]!));
    return op === "avg" ? Math.fround(value) : value;
  });
  return numbersOf(result);
}

const allReduceAlgorithms = {
  ring: ringAllReduce,
  "recursive doubling": recursiveDoubling,
};

describe.each(Object.entries(allReduceAlgorithms))("all-reduce by %s", (_, algorithm) => {
  const types = Object.values(elementTypes);
  test.each(types.map((type) => [type.name, type] as const))(
    "of %s: every operation, world and length",
    (name, type) => {
      for (const op of reduceOps) {
        if (combineFor(op, type.kind) === null) continue;
        for (const worldSize of worlds)
          for (const length of lengths) {
            const inputs = worlds
              .slice(0, worldSize)
              .map((_, rank) => elementsOf(name, length, (index) => valueAt(rank, index, op)));
            const result = expected(op, name, inputs, 0, length);
            run(
              inputs.map((input) => ({ input, output: input })),
              (place) => algorithm(place, length),
              { op, chunkBytes: length > 17 ? 512 : 16, seed: worldSize * 100 + length },
            );
            for (const output of inputs) same(numbersOf(output), result, `${op} ${worldSize} ${length}`);
          }
      }
    },
  );

  test("ends with the same bits on all members where rounding, infinities and NaNs of any bits meet", () => {
    for (let worldSize = 2; worldSize <= 8; worldSize += 1) {
      const random = seededRandom(worldSize);
      const inputs = Array.from({ length: worldSize }, () => {
        const bits = Uint32Array.from({ length: 101 }, () => random() * 2 ** 32);
        return new Elements(elementTypes.float32, new Float32Array(bits.buffer));
      });
      run(
        inputs.map((input) => ({ input, output: input })),
        (place) => algorithm(place, 101),
      );
      const bits = inputs.map(({ array }) => [...new Uint32Array(array.buffer)]);
      for (const other of bits) expect(other).toEqual(bits[0]);
    }
  });

  test("of four halves 60000 gives the mean 60000, and the sum infinity", () => {
    for (const [op, result] of [
      ["avg", 60000],
      ["sum", Number.POSITIVE_INFINITY],
    ] as const) {
      const inputs = Array.from({ length: 4 }, () => elementsOf("float16", 5, () => 60000));
      run(
        inputs.map((input) => ({ input, output: input })),
        (place) => algorithm(place, 5),
        { op },
      );
      for (const output of inputs) expect(numbersOf(output)).toEqual(new Array(5).fill(result));
    }
  });
});

test("a ring all-reduce sends 2 (N - 1) / N of the whole from each member, and recursive doubling log2(N) times the whole", () => {
  for (const worldSize of [2, 4, 8]) {
    const inputs = () =>
      Array.from({ length: worldSize }, () => {
        const input = elementsOf("float32", 840, () => 1);
        return { input, output: input };
      });
    const ring = run(inputs(), (place) => ringAllReduce(place, 840), { chunkBytes: 64 });
    expect(ring.sentBytes).toEqual(new Array(worldSize).fill((2 * (worldSize - 1) * 840 * 4) / worldSize));
    const doubling = run(inputs(), (place) => recursiveDoubling(place, 840), { chunkBytes: 64 });
    expect(doubling.sentBytes).toEqual(new Array(worldSize).fill(Math.log2(worldSize) * 840 * 4));
  }
});

const typesAndRoots = (visit: (name: ElementTypeName, worldSize: number, root: number, length: number) => void) => {
  for (const { name } of Object.values(elementTypes))
    for (const worldSize of worlds)
      for (const length of lengths) visit(name, worldSize, (worldSize * 3 + length) % worldSize, length);
};
const numbered = (name: ElementTypeName, worldSize: number, length: number) =>
  Array.from({ length: worldSize }, (_, rank) => elementsOf(name, length, (index) => valueAt(rank, index, "sum")));
const inPlace = (input: Elements): Member => ({ input, output: input });

test.each([
  ["ring", ringBroadcast],
  ["tree", treeBroadcast],
])("a broadcast by %s gives everyone the root's values", (_, algorithm) => {
  typesAndRoots((name, worldSize, root, length) => {
    const inputs = numbered(name, worldSize, length);
    const wanted = numbersOf(inputs[root]!);
    run(inputs.map(inPlace), (place) => inSequence(algorithm(place, root, length), dissemination(place)));
    for (const output of inputs) same(numbersOf(output), wanted);
  });
});

test.each([
  ["ring", ringReduce],
  ["tree", treeReduce],
])("a reduce by %s gives the root the result, and leaves the others' values alone", (_, algorithm) => {
  typesAndRoots((name, worldSize, root, length) => {
    const op = name === "bool" ? "bor" : "sum";
    const inputs = numbered(name, worldSize, length);
    const before = inputs.map(numbersOf);
    const wanted = expected(op, name, inputs, 0, length);
    run(inputs.map(inPlace), (place) => inSequence(algorithm(place, root, length), dissemination(place)), { op });
    for (const [rank, output] of inputs.entries()) same(numbersOf(output), rank === root ? wanted : before[rank]);
  });
});

/** Uneven segments, some of them empty. */
const unevenLengths = (worldSize: number, length: number) =>
  Array.from({ length: worldSize }, (_, rank) => (length * (rank + 2)) % 5);

test.each([
  ["ring", ringAllGather],
  ["direct", directAllGather],
])("an all-gather by %s gives everyone everybody's segment, whatever their lengths", (_, algorithm) => {
  typesAndRoots((name, worldSize, _root, length) => {
    const segments = unevenLengths(worldSize, length);
    const start = boundariesOf(segments);
    const inputs = segments.map((count, rank) => elementsOf(name, count, (index) => valueAt(rank, index, "sum")));
    const outputs = inputs.map((input, rank) => {
      const output = Elements.allocate(input.type, start(worldSize));
      output.copyFrom(input, start(rank));
      return output;
    });
    run(
      inputs.map((input, rank) => ({ input, output: outputs[rank]! })),
      (place) => algorithm(place, start),
    );
    for (const output of outputs) same(numbersOf(output), inputs.flatMap(numbersOf));
  });
});

test.each([
  ["ring", ringReduceScatter],
  ["direct", directReduceScatter],
])("a reduce-scatter by %s gives each rank its segment of the result", (_, algorithm) => {
  typesAndRoots((name, worldSize, _root, length) => {
    if (worldSize === 1) return;
    const op = name === "bool" ? "max" : "sum";
    const start = evenBoundaries(length, worldSize);
    const inputs = numbered(name, worldSize, length);
    const before = inputs.map(numbersOf);
    const outputs = inputs.map(({ type }, rank) => Elements.allocate(type, start(rank + 1) - start(rank)));
    run(
      inputs.map((input, rank) => ({ input, output: outputs[rank]! })),
      (place) => algorithm(place, start),
      { op },
    );
    for (const [rank, output] of outputs.entries())
      same(numbersOf(output), expected(op, name, inputs, start(rank), start(rank + 1)));
    for (const [rank, input] of inputs.entries()) same(numbersOf(input), before[rank]);
  });
});

test("gather and scatter move segments to and from the root", () => {
  typesAndRoots((name, worldSize, root, length) => {
    const segments = unevenLengths(worldSize, length);
    const start = boundariesOf(segments);
    const parts = segments.map((count, rank) => elementsOf(name, count, (index) => valueAt(rank, index, "sum")));
    const whole = Elements.allocate(parts[0]!.type, start(worldSize));
    whole.copyFrom(parts[root]!, start(root));
    run(
      parts.map((input, rank) => ({ input, output: rank === root ? whole : input })),
      (place) => inSequence(gatherTo(place, root, start), dissemination(place)),
    );
    same(numbersOf(whole), parts.flatMap(numbersOf));
    const outputs = segments.map((count) => Elements.allocate(whole.type, count));
    outputs[root]!.copyFrom(whole.slice(start(root), start(root + 1)));
    run(
      outputs.map((output, rank) => ({ input: rank === root ? whole : output, output })),
      (place) => inSequence(scatterFrom(place, root, start), dissemination(place)),
    );
    same(outputs.flatMap(numbersOf), numbersOf(whole));
  });
});

test("all-to-all gives segment s of every rank to rank s", () => {
  for (const worldSize of worlds.slice(1))
    for (const length of lengths) {
      const count = (from: number, to: number) => (from * 2 + to + length) % 4;
      const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
      const value = (from: number, to: number, index: number) => from * 100 + to * 10 + index;
      const sends = ranks.map((from) => boundariesOf(ranks.map((to) => count(from, to))));
      const receipts = ranks.map((to) => boundariesOf(ranks.map((from) => count(from, to))));
      const type = elementTypes.int32;
      const inputs = ranks.map((from) => {
        const list = ranks.flatMap((to) =>
          Array.from({ length: count(from, to) }, (_, index) => value(from, to, index)),
        );
        return new Elements(type, Int32Array.from(list));
      });
      const outputs = ranks.map((to) => {
        const output = Elements.allocate(type, receipts[to]!(worldSize));
        output.copyFrom(inputs[to]!.slice(sends[to]!(to), sends[to]!(to + 1)), receipts[to]!(to));
        return output;
      });
      run(
        inputs.map((input, rank) => ({ input, output: outputs[rank]! })),
        (place) => allToAllDirect(place, sends[place.rank]!, receipts[place.rank]!),
        { chunkBytes: 4 },
      );
      for (const to of ranks)
        expect(numbersOf(outputs[to]!)).toEqual(
          ranks.flatMap((from) => Array.from({ length: count(from, to) }, (_, index) => value(from, to, index))),
        );
    }
});

test("a dissemination barrier takes the logarithm of the world's size in rounds", () => {
  for (const worldSize of worlds) {
    const empty = Array.from({ length: worldSize }, () => inPlace(Elements.allocate(elementTypes.uint8, 0)));
    const { chunks, sentBytes } = run(empty, dissemination);
    expect(chunks).toBe(worldSize * Math.ceil(Math.log2(worldSize)));
    expect(sentBytes).toEqual(new Array(worldSize).fill(0));
  }
});

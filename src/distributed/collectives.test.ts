import { expect, test } from "vitest";
import { recursiveDoubling } from "./algorithms/doubling";
import { ringAllReduce } from "./algorithms/ring";
import { Float16Bits } from "./float16";
import { makeRanks } from "./testing/ranks";

const none = (worldSize: number) => new Array<null>(worldSize).fill(null);

test("all-reduce combines every type by every operation, in place", async () => {
  const { groups, outcomes } = makeRanks(3);
  const of = {
    sum: groups.map(({ rank }) => Float32Array.of(rank, 0.5)),
    avg: groups.map(({ rank }) => Float16Bits.from([rank, 60000])),
    prod: groups.map(({ rank }) => Int32Array.of(rank + 1, -2)),
    min: groups.map(({ rank }) => Uint32Array.of(4_000_000_000 - rank, rank)),
    max: groups.map(({ rank }) => Uint8Array.of(rank, 200 + rank)),
    bxor: groups.map(({ rank }) => Int32Array.of(1 << rank, 7)),
  };
  const works = groups.flatMap((group) => [
    group.allReduce(of.sum[group.rank]!),
    group.allReduce(of.avg[group.rank]!, "avg"),
    group.allReduce(of.prod[group.rank]!, "prod"),
    group.allReduce(of.min[group.rank]!, "min"),
    group.allReduce(of.max[group.rank]!, "max"),
    group.allReduce(of.bxor[group.rank]!, "bxor"),
  ]);
  expect(await outcomes(works)).toEqual(none(18));
  for (const { rank } of groups) {
    expect([...of.sum[rank]!]).toEqual([3, 1.5]);
    expect([...of.avg[rank]!.toFloat32()]).toEqual([1, 60000]);
    expect([...of.prod[rank]!]).toEqual([6, -8]);
    expect([...of.min[rank]!]).toEqual([3_999_999_998, 0]);
    expect([...of.max[rank]!]).toEqual([2, 202]);
    expect([...of.bxor[rank]!]).toEqual([7, 7]);
  }
});

test("the mean of five elements of rank + 1 in a world of 3 is 2 everywhere", async () => {
  const { groups, outcomes } = makeRanks(3);
  const data = groups.map(({ rank }) => new Float32Array(5).fill(rank + 1));
  expect(await outcomes(groups.map((group) => group.allReduce(data[group.rank]!, "avg")))).toEqual(none(3));
  for (const values of data) expect([...values]).toEqual([2, 2, 2, 2, 2]);
});

test("the mean of integers is refused on every rank, with what to do instead", async () => {
  const { groups, outcomes } = makeRanks(2);
  const sentence =
    'The operation "avg" takes float values, and these are int32: sum them and divide, or average float32 values.';
  const data = groups.map(() => Int32Array.of(3, 6));
  for (const outcome of await outcomes(groups.map((group) => group.allReduce(data[group.rank]!, "avg"))))
    expect(outcome).toContain(sentence);
  for (const values of data) expect([...values]).toEqual([3, 6]);
  const sums = groups.map(() => Int32Array.of(3, 6));
  expect(await outcomes(groups.map((group) => group.allReduce(sums[group.rank]!)))).toEqual(none(2));
  for (const values of sums) expect([...values]).toEqual([6, 12]);
});

test("without elements every collective returns, and the next one works", async () => {
  for (const worldSize of [1, 2, 3, 4]) {
    const { groups, outcomes } = makeRanks(worldSize);
    const after = groups.map(({ rank }) => Float32Array.of(rank));
    const empty = () => new Float32Array(0);
    const list = () => Array.from({ length: worldSize }, empty);
    const works = groups.flatMap((group) => [
      group.allReduce(empty()),
      group.allReduce(empty(), "avg", { algorithm: ringAllReduce }),
      group.reduce(empty(), 0),
      group.broadcast(empty(), 0),
      group.allGather(list(), empty()),
      group.gather(empty(), group.rank === 0 ? list() : null, 0),
      group.scatter(empty(), group.rank === 0 ? list() : null, 0),
      group.reduceScatter(empty(), list()),
      group.allToAll(list(), list()),
      group.allReduce(after[group.rank]!),
    ]);
    expect(await outcomes(works)).toEqual(none(10 * worldSize));
    for (const values of after) expect([...values]).toEqual([(worldSize * (worldSize - 1)) / 2]);
  }
});

test("two elements over four ranks are exact by every algorithm", async () => {
  for (const algorithm of [ringAllReduce, recursiveDoubling]) {
    const { groups, outcomes } = makeRanks(4);
    const data = groups.map(({ rank }) => Float32Array.of(rank + 1, 10 * (rank + 1)));
    await outcomes(groups.map((group) => group.allReduce(data[group.rank]!, "sum", { algorithm })));
    for (const values of data) expect([...values]).toEqual([10, 100]);
  }
});

test("four halves of 60000 have the mean 60000, large and small", async () => {
  for (const length of [3, 100_000]) {
    const { groups, outcomes } = makeRanks(4);
    const data = groups.map(() => Float16Bits.from(new Float32Array(length).fill(60000)));
    expect(await outcomes(groups.map((group) => group.allReduce(data[group.rank]!, "avg")))).toEqual(none(4));
    for (const { bits } of data) expect(new Set(bits)).toEqual(new Set([data[0]!.bits[0]!]));
    expect(data[0]!.toFloat32()[0]).toBe(60000);
  }
});

test("a world of one leaves values as they are", async () => {
  const { groups, outcomes } = makeRanks(1);
  const [group] = groups;
  const values = Float32Array.of(0.1, Number.NaN, -0);
  const [before, gathered, scattered] = [values.slice(), new Float32Array(3), new Float32Array(3)];
  const works = [
    group!.allReduce(values, "avg"),
    group!.reduce(values, 0, "prod"),
    group!.broadcast(values, 0),
    group!.allGather([gathered], values),
    group!.reduceScatter(scattered, [values], "max"),
    group!.barrier(),
    group!.monitoredBarrier(),
  ];
  expect(await outcomes(works)).toEqual(none(7));
  expect([values, gathered, scattered].map((list) => [...list])).toEqual([[...before], [...before], [...before]]);
});

test("reduce gives one rank the result and leaves the others' values alone", async () => {
  for (const length of [3, 50_000]) {
    const { groups, outcomes } = makeRanks(5);
    const data = groups.map(({ rank }) => new Float32Array(length).fill(rank));
    expect(await outcomes(groups.map((group) => group.reduce(data[group.rank]!, 3)))).toEqual(none(5));
    expect(data.map((values) => values[length - 1])).toEqual([0, 1, 2, 10, 4]);
  }
});

test("broadcast copies one rank's values to all, large and small", async () => {
  for (const length of [2, 40_000]) {
    const { groups, outcomes } = makeRanks(4);
    const data = groups.map(({ rank }) => Int32Array.from({ length }, (_, index) => rank * 100_000 + index));
    expect(await outcomes(groups.map((group) => group.broadcast(data[group.rank]!, 2)))).toEqual(none(4));
    for (const values of data) expect(Buffer.compare(Buffer.from(values.buffer), Buffer.from(data[2]!.buffer))).toBe(0);
  }
});

test("gathers bring every rank's values together, in lists or in one", async () => {
  for (const length of [2, 30_000]) {
    const { groups, outcomes } = makeRanks(3);
    const input = (rank: number) => new Uint8Array(length).fill(rank + 1);
    const lists = groups.map(() => [0, 1, 2].map(() => new Uint8Array(length)));
    const wholes = groups.map(() => new Uint8Array(3 * length));
    const atRoot = [0, 1, 2].map(() => new Uint8Array(length));
    const works = groups.flatMap((group) => [
      group.allGather(lists[group.rank]!, input(group.rank)),
      group.allGatherIntoTensor(wholes[group.rank]!, input(group.rank)),
      group.gather(input(group.rank), group.rank === 1 ? atRoot : null, 1),
    ]);
    expect(await outcomes(works)).toEqual(none(9));
    for (const list of [...lists, atRoot])
      expect(list.map((values) => [values[0], values[length - 1]])).toEqual([
        [1, 1],
        [2, 2],
        [3, 3],
      ]);
    for (const whole of wholes) expect([whole[0], whole[length], whole[3 * length - 1]]).toEqual([1, 2, 3]);
  }
});

test("scatter and reduce-scatter give each rank its own part", async () => {
  for (const length of [2, 30_000]) {
    const { groups, outcomes } = makeRanks(3);
    const part = (rank: number, index: number) => new Float32Array(length).fill(10 * rank + index);
    const parts = (rank: number) => [0, 1, 2].map((index) => part(rank, index));
    const flat = (rank: number) => Float32Array.from(parts(rank).flatMap((values) => [...values]));
    const results = groups.map(() => [0, 1, 2].map(() => new Float32Array(length)));
    const works = groups.flatMap((group) => {
      const [scattered, reduced, mean] = results[group.rank]!;
      return [
        group.scatter(scattered!, group.rank === 2 ? parts(2) : null, 2),
        group.reduceScatter(reduced!, parts(group.rank)),
        group.reduceScatterTensor(mean!, flat(group.rank), "avg"),
      ];
    });
    expect(await outcomes(works)).toEqual(none(9));
    for (const [rank, lists] of results.entries())
      expect(lists.map((values) => values[length - 1])).toEqual([20 + rank, 30 + 3 * rank, 10 + rank]);
  }
});

test("all-to-all exchanges parts of any lengths", async () => {
  const { groups, outcomes } = makeRanks(3);
  const values = (from: number, to: number) => Int32Array.from({ length: from + 2 * to }, () => 10 * from + to);
  const outputs = groups.map(({ rank }) => [0, 1, 2].map((from) => new Int32Array(from + 2 * rank)));
  const works = groups.map((group) =>
    group.allToAll(
      outputs[group.rank]!,
      [0, 1, 2].map((to) => values(group.rank, to)),
    ),
  );
  expect(await outcomes(works)).toEqual(none(3));
  for (const [to, lists] of outputs.entries())
    for (const [from, list] of lists.entries()) expect([...list]).toEqual([...values(from, to)]);
});

test("several collectives of different kinds overlap and keep apart", async () => {
  const { groups, outcomes } = makeRanks(4, 99);
  const sums = groups.map(({ rank }) =>
    Array.from({ length: 20 }, (_, index) => new Float32Array(1 + 3000 * (index % 3)).fill(rank + index)),
  );
  const works = groups.flatMap((group) =>
    sums[group.rank]!.flatMap((values) => [group.allReduce(values), group.barrier()]),
  );
  expect(await outcomes(works)).toEqual(none(160));
  for (const lists of sums)
    for (const [index, values] of lists.entries()) expect(values[values.length - 1]).toBe(6 + 4 * index);
});

test("batches of messages start all at once, as a ring shift needs", async () => {
  const { groups, outcomes } = makeRanks(4);
  const received = groups.map(() => Int32Array.of(-1));
  const works = groups.flatMap((group) =>
    group.batchIsendIrecv([
      { op: "isend", values: Int32Array.of(group.rank), peer: (group.rank + 1) % 4 },
      { op: "irecv", values: received[group.rank]!, peer: (group.rank + 3) % 4 },
    ]),
  );
  expect(await outcomes(works)).toEqual(none(8));
  expect(received.map((values) => values[0])).toEqual([3, 0, 1, 2]);
});

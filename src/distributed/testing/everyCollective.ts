import { messageOf } from "../../base/messageOf";
import { type Tensor, tensor } from "../../tensor";
import { destroyProcessGroup, type InitOptions, initProcessGroup } from "../defaultGroup";
import { Float16Bits } from "../float16";
import * as dist from "../functions";
import type { ProcessGroup } from "../processGroup";
import { type ReduceOp, reduceOps } from "../reduceOp";
import { beginCall, type Call, callKinds, describeCall, isDefined } from "../simulation/calls";
import type { Values } from "../values";
import type { Work } from "../work";

const types = ["float32", "float16", "int32", "uint32", "uint8"] as const;
const reducing: ReadonlySet<Call["kind"]> = new Set(["allReduce", "ring", "doubling", "reduce", "reduceScatter"]);
/** None, few, and more than a chunk for every rank. */
const lengths = [0, 5, 50_021];

/** Everything that a rank can be asked for, in a world of 3. @returns what is wrong; empty when all is right. */
export async function tryEveryCollective(options: InitOptions): Promise<string[]> {
  const group = await initProcessGroup(options);
  const problems: string[] = [];
  try {
    await tryCalls(group, problems);
    for (const [name, part] of Object.entries(parts)) {
      const begun = part(group);
      await Promise.all(begun.works.map((work) => work.wait()));
      const [got, wanted] = [JSON.stringify(await begun.got()), JSON.stringify(begun.wanted)];
      if (got !== wanted) problems.push(`${name}: got ${got}, expected ${wanted}`);
    }
    await tryStore(group, problems);
    await tryDifference(group, problems);
    await dist.monitoredBarrier().wait();
  } catch (error) {
    problems.push(messageOf(error));
  }
  destroyProcessGroup();
  return problems;
}

/** Every kind of call with every type, operation and length; those of one kind and type run at once. */
async function tryCalls(group: ProcessGroup, problems: string[]): Promise<void> {
  let index = 0;
  for (const kind of callKinds)
    for (const type of types) {
      const ops: readonly ReduceOp[] = reducing.has(kind) ? reduceOps.filter((op) => isDefined(op, type)) : ["sum"];
      const calls = ops.flatMap((op) =>
        // One operation is enough to see that what is large is cut and put together right.
        lengths
          .filter((length) => length < 100 || op === "sum")
          .map((length): Call => {
            index += 1;
            return { kind, index, type, op, length: kind === "objects" ? length % 1000 : length, root: index % 3 };
          }),
      );
      const begun = calls.map((call) => ({ call, ...beginCall(call, group) }));
      for (const { call, works, check } of begun) {
        await Promise.all(works.map((work) => work.wait()));
        const problem = check();
        if (problem !== null) problems.push(`${describeCall(call)}: ${problem}`);
      }
    }
}

interface Part {
  readonly works: readonly Work[];
  readonly got: () => unknown;
  readonly wanted: unknown;
}

const numbers = async (values: Values | Tensor): Promise<number[]> => {
  if (values instanceof Float16Bits) return [...values.toFloat32()];
  if ("data" in values) return Array.from(await values.data());
  if (ArrayBuffer.isView(values)) return Array.from(values);
  throw new TypeError("These values aren't an array.");
};
const all = (list: readonly Values[]) => Promise.all(list.map(numbers));

/** What has known numbers: reports of others, tensors on the GPU, objects, groups, messages. */
const parts: Readonly<Record<string, (group: ProcessGroup) => Part>> = {
  "the mean of five elements of rank + 1": ({ rank }) => {
    const values = new Float32Array(5).fill(rank + 1);
    return { works: [dist.allReduce(values, "avg")], got: () => numbers(values), wanted: [2, 2, 2, 2, 2] };
  },
  "the mean of three times 60000 in float16": () => {
    const values = Float16Bits.from([60000]);
    return { works: [dist.allReduce(values, "avg")], got: () => numbers(values), wanted: [60000] };
  },
  "tensors, combined": ({ rank }) => {
    const values = [
      tensor([[rank + 1, -rank]]),
      tensor([rank + 0.5, 60000]).to("float16"),
      tensor(Int32Array.of(2 ** 30, rank)),
      tensor([rank === 1, false], { dtype: "bool" }),
    ] as const;
    const ops: readonly ReduceOp[] = ["sum", "avg", "sum", "bor"];
    return {
      works: values.map((one, index) => dist.allReduce(one, ops[index])),
      got: () => all(values),
      wanted: [
        [6, -3],
        [1.5, 60000],
        [3 * 2 ** 30 - 2 ** 32, 3],
        [1, 0],
      ],
    };
  },
  "tensors, moved": ({ rank }) => {
    const zeros = () => tensor(Float32Array.of(9, 9));
    const own = tensor([rank, 10 * rank]);
    const [broadcast, scattered, sent] = [tensor([rank, 1]), zeros(), zeros()];
    const gathered = [zeros(), zeros(), zeros()];
    const works = [
      dist.broadcast(broadcast, 2),
      dist.scatter(scattered, rank === 1 ? [0, 1, 2].map((to) => tensor([to, -to])) : null, 1),
      dist.allGather(gathered, own),
      dist.isend(own, (rank + 1) % 3, 5),
      dist.irecv(sent, (rank + 2) % 3, 5),
    ];
    const left = (rank + 2) % 3;
    return {
      works,
      got: () => all([broadcast, scattered, ...gathered, sent]),
      wanted: [
        [2, 1],
        [rank, -rank + 0],
        [0, 0],
        [1, 10],
        [2, 20],
        [left, 10 * left],
      ],
    };
  },
  "all-to-all of lists that differ in length": ({ rank }) => {
    const outputs = [0, 1, 2].map((from) => new Int32Array(from + 1));
    const works = [
      dist.allToAll(
        outputs,
        [0, 1, 2].map((to) => new Int32Array(rank + 1).fill(10 * rank + to)),
      ),
    ];
    const wanted = [0, 1, 2].map((from) => new Array<number>(from + 1).fill(10 * from + rank));
    return { works, got: () => all(outputs), wanted };
  },
  "lists: all-gather, gather, reduce-scatter": ({ rank }) => {
    const lists = [0, 1].map(() => [0, 1, 2].map(() => new Uint8Array(2)));
    const part = new Float32Array(2);
    const own = Uint8Array.of(rank, 255);
    const works = [
      dist.allGather(lists[0]!, own),
      dist.gather(own, rank === 2 ? lists[1]! : null, 2),
      dist.reduceScatter(
        part,
        [0, 1, 2].map((to) => Float32Array.of(rank + to, 1)),
        "max",
      ),
    ];
    const gathered = [0, 1, 2].map((from) => [from, 255]);
    const nothing = [0, 1, 2].map(() => [0, 0]);
    return {
      works,
      got: async () => [await all(lists[0]!), await all(lists[1]!), await numbers(part)],
      wanted: [gathered, rank === 2 ? gathered : nothing, [rank + 2, 1]],
    };
  },
  objects: ({ rank }) => {
    const objects = ["a", { b: [1] }, null];
    const [everyone, atOne, one]: unknown[][] = [[], [], []];
    const list = rank === 0 ? [...objects] : [0, 0, 0];
    const works = [
      dist.allGatherObject(everyone!, objects[rank]),
      dist.gatherObject({ rank }, rank === 1 ? atOne! : null, 1),
      dist.broadcastObjectList(list, 0),
      dist.scatterObjectList(one!, rank === 2 ? objects : null, 2),
    ];
    const ranks = rank === 1 ? [{ rank: 0 }, { rank: 1 }, { rank: 2 }] : [];
    return { works, got: () => [everyone, atOne, list, one], wanted: [objects, ranks, objects, [objects[rank]]] };
  },
  "groups of ranks 2 and 0, and of one each": ({ rank }) => {
    const [pair, own] = [dist.newGroup([2, 0]), dist.newSubgroups(1)];
    const [values, alone] = [Int32Array.of(rank + 1), Int32Array.of(rank)];
    const works = [...(pair === null ? [] : [dist.allReduce(values, "sum", pair)]), dist.allReduce(alone, "sum", own)];
    return {
      works,
      got: async () => [dist.getRank(pair), await numbers(values), await numbers(alone)],
      wanted: [[1, -1, 0][rank], [rank === 1 ? 2 : 4], [rank]],
    };
  },
  "messages under two tags, received the other way round": ({ rank }) => {
    const [first, second] = [new Float32Array(1), new Uint8Array(100_000)];
    if (rank === 2) return { works: [dist.barrier()], got: () => 0, wanted: 0 };
    const works =
      rank === 0
        ? [dist.send(Float32Array.of(0.5), 1, 1), dist.send(new Uint8Array(100_000).fill(7), 1, 2)]
        : [dist.recv(second, 0, 2), dist.recv(first, 0, 1)];
    return {
      works: [...works, dist.barrier()],
      got: () => [first[0], second[99_999]],
      wanted: rank === 0 ? [0, 0] : [0.5, 7],
    };
  },
};

async function tryStore({ rank }: ProcessGroup, problems: string[]): Promise<void> {
  const store = dist.getStore();
  await store.set(`from ${rank}`, `rank ${rank}`);
  await store.wait(["from 0", "from 1", "from 2"]);
  await store.add("count", rank + 1);
  await dist.barrier().wait();
  const got = [await store.get("from 2"), await store.add("count", 0)];
  if (String(got) !== "rank 2,6") problems.push(`store: got ${got.join(", ")}`);
}

/** One rank brings another length: all fail, and name both sides. */
async function tryDifference({ rank }: ProcessGroup, problems: string[]): Promise<void> {
  const work = dist.allReduce(new Float32Array(rank === 1 ? 9 : 8));
  const sentence = await work.wait().then(() => "no failure", messageOf);
  if (!/Rank \d called allReduce \(sum\) of float32\[[89]\] by/.test(sentence) || !sentence.includes("ank 1 called"))
    problems.push(`lengths that differ: ${sentence}`);
}

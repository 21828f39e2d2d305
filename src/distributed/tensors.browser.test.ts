import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { setDefaultDevice, tensor } from "../tensor";
import { InProcessHub } from "../transport/inProcess";
import { memberId } from "../transport/memberId";
import { ProcessGroup } from "./processGroup";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

/** Two ranks in this page, over in-process links. */
function makeGroups(): readonly ProcessGroup[] {
  const hub = new InProcessHub();
  const members = [memberId("1".repeat(32)), memberId("2".repeat(32))];
  const networks = members.map((member) => hub.join(member));
  hub.connect(members[0]!, members[1]!);
  return networks.map((network) => new ProcessGroup({ network, members, timeoutMilliseconds: 5000 }));
}

test("tensors on the GPU take part like arrays, in every type", async () => {
  const groups = makeGroups();
  const floats = groups.map(({ rank }) => tensor([[rank + 1, 2 * rank]]));
  const integers = groups.map(({ rank }) => tensor(Int32Array.of(rank + 1, -3)));
  const flags = groups.map(({ rank }) => tensor([rank === 0, false], { dtype: "bool" }));
  const gathered = groups.map(() => [0, 1].map(() => tensor(new Float32Array(2), { shape: [1, 2] })));
  const before = groups.map(({ rank }) => tensor([[rank + 1, 2 * rank]]));
  const received = tensor(new Int32Array(2));
  const works = groups.flatMap((group) => [
    group.allGather(gathered[group.rank]!, before[group.rank]!),
    group.allReduce(floats[group.rank]!, "avg"),
    group.allReduce(integers[group.rank]!, "max"),
    group.allReduce(flags[group.rank]!, "bor"),
    group.broadcast(before[group.rank]!, 1),
  ]);
  works.push(groups[0]!.send(tensor(Int32Array.of(5, 6)), 1), groups[1]!.recv(received, 0));
  await Promise.all(works.map((work) => work.wait()));
  for (const { rank } of groups) {
    expect(await floats[rank]!.array()).toEqual([[1.5, 1]]);
    expect([...(await integers[rank]!.data())]).toEqual([2, -3]);
    expect([...(await flags[rank]!.data())]).toEqual([1, 0]);
    expect(await Promise.all(gathered[rank]!.map((values) => values.array()))).toEqual([[[1, 0]], [[2, 2]]]);
    expect(await before[rank]!.array()).toEqual([[2, 2]]);
  }
  expect([...(await received.data())]).toEqual([5, 6]);
});

test("shapes and types that differ fail both ranks with both sides", async () => {
  const groups = makeGroups();
  const different = [tensor([[1, 2]]), tensor([1, 2])];
  for (const result of await Promise.allSettled(groups.map((group) => group.allReduce(different[group.rank]!).wait())))
    expect(result.status === "rejected" && String(result.reason)).toMatch(
      /Rank 0 called allReduce \(sum\) of float32\[1, 2\] .*, and rank 1 called allReduce \(sum\) of float32\[2\]/,
    );
  const works = groups.map((group) => group.allReduce(tensor(Int32Array.of(3, 6)), "avg"));
  for (const result of await Promise.allSettled(works.map((work) => work.wait())))
    expect(result.status === "rejected" && String(result.reason)).toContain(
      'The operation "avg" takes float values, and these are int32',
    );
});

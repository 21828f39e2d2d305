import { afterEach, expect, test } from "vitest";
import { destroyProcessGroup, getProcessGroup, initProcessGroup, isInitialized } from "./defaultGroup";
import * as dist from "./functions";

afterEach(() => destroyProcessGroup());

test("every collective works on a world of one, as a script without others runs it", async () => {
  expect(isInitialized()).toBe(false);
  expect(() => dist.getRank()).toThrow("There is no process group yet: await initProcessGroup() first.");
  await initProcessGroup();
  expect([dist.getRank(), dist.getWorldSize(), dist.getProcessGroupRanks()]).toEqual([0, 1, [0]]);
  const values = Float32Array.of(1, 2);
  const outputs = Array.from({ length: 6 }, () => new Float32Array(2));
  const lists: unknown[][] = [[], [], [{ a: 1 }], []];
  const works = [
    dist.allReduce(values, "avg"),
    dist.reduce(values, 0, "max"),
    dist.broadcast(values, 0),
    dist.allGather([outputs[0]!], values),
    dist.allGatherIntoTensor(outputs[1]!, values),
    dist.gather(values, [outputs[2]!]),
    dist.scatter(outputs[3]!, [values]),
    dist.reduceScatter(outputs[4]!, [values]),
    dist.reduceScatterTensor(outputs[5]!, values),
    dist.barrier(),
    dist.monitoredBarrier(),
    dist.allGatherObject(lists[0]!, "x"),
    dist.gatherObject("y", lists[1]!),
    dist.broadcastObjectList(lists[2]!),
    dist.scatterObjectList(lists[3]!, ["z"]),
  ];
  await Promise.all(works.map((work) => work.wait()));
  for (const list of [values, ...outputs]) expect([...list]).toEqual([1, 2]);
  expect(lists).toEqual([["x"], ["y"], [{ a: 1 }], ["z"]]);
  await dist.getStore().set("key", "value");
  expect(await dist.getStore().get("key")).toBe("value");
});

test("groups of the world take the world's ranks, and null is no group", async () => {
  await initProcessGroup();
  const group = dist.newGroup([0]);
  expect(group === null ? null : [dist.getGlobalRank(group, 0), dist.getGroupRank(group, 0)]).toEqual([0, 0]);
  expect([dist.getRank(null), dist.getWorldSize(null)]).toEqual([-1, -1]);
  expect(dist.newSubgroups(1).ranks).toEqual([0]);
  expect(() => dist.broadcast(new Float32Array(1), 1)).toThrow("rank 1 isn't in the group of ranks 0");
});

test("a second world is refused until the first is left", async () => {
  await initProcessGroup();
  await expect(initProcessGroup()).rejects.toThrow(
    "The process group is there already: destroyProcessGroup() ends it.",
  );
  const first = getProcessGroup();
  destroyProcessGroup();
  expect(await initProcessGroup()).not.toBe(first);
});

import { expect, test } from "vitest";
import { idOf, makeRanks } from "./testing/ranks";

test("all ranks see what any of them sets", async () => {
  const { groups, settle } = makeRanks(3);
  await settle(groups[1]!.store.set("key", "välue"));
  for (const { store } of groups) expect(await settle(store.get("key"))).toBe("välue");
  expect(await settle(groups[2]!.store.numKeys())).toBe(1);
  expect(await settle(groups[2]!.store.deleteKey("key"))).toBe(true);
  expect(await settle(groups[0]!.store.deleteKey("key"))).toBe(false);
});

test("get and wait hold until the keys are there", async () => {
  const { clock, groups, settle } = makeRanks(2);
  const value = groups[1]!.store.get("a");
  const both = groups[0]!.store.wait(["a", "b"]);
  await clock.advance(1000);
  await settle(groups[0]!.store.set("a", "1"));
  expect(await settle(value)).toBe("1");
  await settle(groups[1]!.store.set("b", "2"));
  await settle(both);
});

test("a time-out names the keys that nobody set", async () => {
  const { clock, groups, settle } = makeRanks(2);
  await settle(groups[0]!.store.set("a", "1"));
  await expect(settle(groups[1]!.store.wait(["a", "b", "c"], 500))).rejects.toThrow(
    'Rank 1: The store waited 0.5 s for "b", "c", which nobody set.',
  );
  await expect(settle(groups[0]!.store.get("b", 500))).rejects.toThrow('Rank 0: The store waited 0.5 s for "b"');
  await clock.advance(10_000);
  expect(clock.nextDue).toBeNull();
});

test("add counts over all ranks", async () => {
  const { groups, settle } = makeRanks(4);
  const sums = await settle(Promise.all(groups.map(({ store }, rank) => store.add("count", rank + 1))));
  expect(Math.max(...sums)).toBe(10);
  expect(await settle(groups[3]!.store.add("count", -4))).toBe(6);
  await settle(groups[0]!.store.set("word", "no number"));
  await expect(settle(groups[1]!.store.add("word", 1))).rejects.toThrow(
    'The store adds integers, and key "word" is "no number"',
  );
});

test("compareSet lets exactly one rank win", async () => {
  const { groups, settle } = makeRanks(4);
  const values = await settle(
    Promise.all(groups.map(({ store }, rank) => store.compareSet("lead", "", `rank ${rank}`))),
  );
  expect(new Set(values).size).toBe(1);
  expect(await settle(groups[2]!.store.compareSet("lead", "nobody", "me"))).toBe(values[0]);
  expect(await settle(groups[2]!.store.compareSet("lead", values[0]!, "me"))).toBe("me");
  expect(await settle(groups[2]!.store.compareSet("none", "something", "me"))).toBe("something");
});

test("when rank 0 dies the store says so", async () => {
  const { clock, hub, groups, settle } = makeRanks(2);
  const value = groups[1]!.store.get("a");
  await clock.advance(1);
  hub.kill(idOf(0));
  await expect(settle(value)).rejects.toThrow("The store has no answer from rank 0. Rank 0 is gone.");
  await expect(settle(groups[1]!.store.set("a", "1"))).rejects.toThrow("Rank 0 is gone.");
});

test("what doesn't fit a message is refused", async () => {
  const { groups, settle } = makeRanks(2);
  await expect(settle(groups[1]!.store.set("a", "x".repeat(70_000)))).rejects.toThrow(
    "The store takes keys and values up to 61440 bytes",
  );
});

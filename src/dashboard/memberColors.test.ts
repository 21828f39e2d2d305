import { expect, test } from "vitest";
import { MemberColors, memberColorCount } from "./memberColors";

test("members keep their colours when others go, and newcomers take what is free", () => {
  const colors = new MemberColors();
  expect([...colors.assign(["a", "b", "c"])]).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
  expect(colors.assign(["c", "a"]).get("c")).toBe(2);
  expect(colors.assign(["c", "a", "d"]).get("d")).toBe(1);
});

test("more members than colours share them", () => {
  const ids = Array.from({ length: 20 }, (_, i) => `m${i}`);
  const given = new MemberColors().assign(ids);
  expect(new Set(ids.map((id) => given.get(id)))).toEqual(
    new Set(Array.from({ length: memberColorCount }, (_, i) => i)),
  );
});

import { expect, test } from "vitest";
import { timingParts } from "./timingParts";

test("what the parts leave of the whole is a part of its own", () => {
  const parts = timingParts({ compute: 40, wire: 15, optimizer: 2, total: 60 });
  expect(parts.map((part) => [part.name, part.milliseconds])).toEqual([
    ["compute", 40],
    ["wire", 15],
    ["optimizer", 2],
    ["rest", 3],
  ]);
});

test("parts that overlap leave nothing", () => {
  expect(timingParts({ compute: 40, wire: 30, optimizer: 2, total: 60 })).toHaveLength(3);
});

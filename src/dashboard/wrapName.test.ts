import { expect, test } from "vitest";
import { wrapName } from "./wrapName";

test.each([
  ["Anna", 10, 2, ["Anna"]],
  ["Chrome on Windows", 10, 2, ["Chrome on", "Windows"]],
  ["Chrome on Windows", 22, 1, ["Chrome on Windows"]],
  ["Anna's laptop with a very long name", 10, 2, ["Anna's", "laptop wi…"]],
  ["Anna's laptop with a very long name", 22, 1, ["Anna's laptop with a…"]],
  ["supercalifragilistic", 10, 2, ["supercali…"]],
  ["", 10, 2, [""]],
])("%j in lines of %d, %d at most, is %j", (name, length, lines, wrapped) => {
  expect(wrapName(name, length, lines)).toEqual(wrapped);
});

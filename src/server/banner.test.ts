import { expect, test } from "vitest";
import { banner } from "./banner";

const localUrl = "http://localhost:7373/";

test("the banner names every address and draws the first of other machines as a QR code", () => {
  const text = banner({ localUrl, networkUrls: ["https://192.168.1.5:7374/", "https://[fd00::2]:7374/"] }, false);
  for (const url of [localUrl, "https://192.168.1.5:7374/", "https://[fd00::2]:7374/"]) expect(text).toContain(url);
  const rows = text.split("\n").filter((row) => /[▄▀█]/.test(row));
  // 25 modules of version 2 and a border of 2 at each side, two rows of them in one of text.
  expect(rows).toHaveLength(15);
  expect(new Set(rows.map((row) => row.length))).toEqual(new Set([2 + 29]));
  expect(text).not.toContain("\u001b");
});

test("on a terminal the QR code brings its own colours", () => {
  const text = banner({ localUrl, networkUrls: ["https://192.168.1.5:7374/"] }, true);
  expect(text).toContain("\u001b[97;40m");
});

test("a machine without a network is told so", () => {
  const text = banner({ localUrl, networkUrls: [] }, true);
  expect(text).toContain("no other machine can join");
  expect(text).not.toMatch(/[▄▀█]/);
});

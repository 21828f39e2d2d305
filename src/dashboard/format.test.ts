import { describe, expect, test } from "vitest";
import {
  formatCount,
  formatDuration,
  formatGpu,
  formatLoss,
  formatMegabytesPerSecond,
  formatMilliseconds,
  formatNumber,
  formatPercent,
  plural,
  unknown,
} from "./format";

describe("formatDuration", () => {
  test.each([
    [0, "0:00"],
    [42_400, "0:42"],
    [59_600, "1:00"],
    [725_000, "12:05"],
    [3_723_000, "1:02:03"],
    [-5, "0:00"],
  ])("%d ms is %s", (milliseconds, text) => expect(formatDuration(milliseconds)).toBe(text));

  test("what isn't known yet is a dash", () => {
    expect(formatDuration(null)).toBe(unknown);
    expect(formatDuration(Number.POSITIVE_INFINITY)).toBe(unknown);
  });
});

test("milliseconds keep at most three figures and become seconds from 1000 on", () => {
  expect([0, 0.42, 9.94, 41.2, 999.4, 1250, 12_340].map(formatMilliseconds)).toEqual([
    "0 ms",
    "0.4 ms",
    "9.9 ms",
    "41 ms",
    "999 ms",
    "1.25 s",
    "12.3 s",
  ]);
});

test("traffic is in millions of bytes a second", () => {
  expect([0, 34_000, 3_200_000, 12_340_000, 256_000_000].map(formatMegabytesPerSecond)).toEqual([
    "0.00",
    "0.03",
    "3.20",
    "12.3",
    "256",
  ]);
});

test("losses show four figures or so, and say when they left the numbers", () => {
  expect([0.23456, 2.3031, 123.45, Number.NaN, Number.POSITIVE_INFINITY].map(formatLoss)).toEqual([
    "0.2346",
    "2.303",
    "123.5",
    unknown,
    "∞",
  ]);
});

test("percentages round down, so that only all of them are 100%", () => {
  expect(formatPercent(0.99999, 1)).toBe("99.9%");
  expect(formatPercent(1, 1)).toBe("100.0%");
  expect(formatPercent(0.29)).toBe("29%");
  expect(formatPercent(Number.NaN)).toBe(unknown);
});

test("counts group their thousands and agree with their noun", () => {
  expect(formatCount(60_000)).toBe("60,000");
  expect([plural(1, "member"), plural(2, "member"), plural(1, "tab watches", "tabs watch")]).toEqual([
    "1 member",
    "2 members",
    "1 tab watches",
  ]);
});

test("learning rates have no trailing zeros", () => {
  expect([0.05, 0.001, 1e-8, 0].map(formatNumber)).toEqual(["0.05", "0.001", "1e-8", "0"]);
});

test("a GPU goes by vendor and architecture, else by its description, else by a sentence", () => {
  expect(formatGpu({ vendor: "nvidia", architecture: "ampere", description: "" })).toBe("nvidia · ampere");
  expect(formatGpu({ vendor: "", architecture: "", description: "SwiftShader" })).toBe("SwiftShader");
  expect(formatGpu({ vendor: "", architecture: "", description: "" })).toBe("GPU not named by the browser");
});

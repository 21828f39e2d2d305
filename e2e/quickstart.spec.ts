import { expect, test } from "@playwright/test";
import { ringlet } from "./cli";

test("the quick start trains on two ranks, and its own collective agrees on how well", async () => {
  const { code, stdout, stderr } = await ringlet("run", "docs/examples/quickstart.ts", "--peers", "2");
  expect(code, stderr).toBe(0);
  const lines = stdout.trim().split("\n");
  const losses = lines.flatMap((line) => line.match(/^\[0\] epoch \d+: loss (\d\.\d{4})$/)?.[1] ?? []).map(Number);
  expect(losses).toHaveLength(4);
  expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  expect(Number(lines.at(-1)?.match(/^\[0\] ([\d.]+)% of the points/)?.[1])).toBeGreaterThan(90);
});

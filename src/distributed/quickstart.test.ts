import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the quick start's code is the example that runs", () => {
  const page = readFileSync("docs/quickstart.md", "utf8");
  const [, block] = /```ts\n(.*?)```/s.exec(page) ?? [];
  expect(block).toBe(readFileSync("docs/examples/quickstart.ts", "utf8"));
});

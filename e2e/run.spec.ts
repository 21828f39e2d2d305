import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import { ringlet } from "./cli";

test("ringlet run trains the documented example on three ranks", async () => {
  const { code, stdout, stderr } = await ringlet(
    "run",
    "docs/examples/spirals.ts",
    "--peers",
    "3",
    "--",
    "--steps",
    "150",
  );
  expect(code, stderr).toBe(0);
  const lines = stdout.trim().split("\n");
  expect(lines.every((line) => line.startsWith("[0] "))).toBe(true);
  expect(lines[0]).toMatch(/^\[0\] step 1: loss 0\.\d{4}$/);
  const right = Number(lines.at(-1)?.match(/^\[0\] (\d+) of 240 points/)?.[1]);
  expect(right).toBeGreaterThanOrEqual(220);
});

test("ringlet run gives each tab RANK, WORLD_SIZE and the arguments, and prints logs with the rank in front", async () => {
  const { code, stdout } = await runScript(
    `import { dist } from "ringlet";
     console.log(dist.env.RANK, dist.env.WORLD_SIZE, dist.env.arguments.join("+"));`,
    ["--peers", "2", "--", "--fast", "7"],
  );
  expect(code).toBe(0);
  expect(stdout.trim().split("\n").sort()).toEqual(["[0] 0 2 --fast+7", "[1] 1 2 --fast+7"]);
});

test("ringlet run ends with the first failing tab's code", async () => {
  const failing = `import { dist } from "ringlet";
    if (dist.env.RANK === 1) throw Object.assign(new Error("rank 1 has had enough"), { exitCode: 7 });
    await new Promise(() => {});`;
  const { code, stderr } = await runScript(failing, ["--peers", "2"]);
  expect(code).toBe(7);
  expect(stderr).toContain("[1] Error: rank 1 has had enough");
});

test("a collective of the user's own, a gossip average, brings four ranks together", async () => {
  const { code, stdout, stderr } = await ringlet(
    "run",
    "docs/examples/gossip.ts",
    "--peers",
    "4",
    "--",
    "--rounds",
    "40",
  );
  expect(code, stderr).toBe(0);
  const within = Number(stdout.match(/gossip came within ([\d.e+-]+)/)?.[1]);
  expect(within).toBeLessThan(0.01);
});

async function runScript(source: string, args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "ringlet-run-"));
  try {
    const script = join(folder, "script.ts");
    await writeFile(script, source);
    return await ringlet("run", script, ...args);
  } finally {
    await rm(folder, { recursive: true });
  }
}

import { createServer } from "node:net";
import { expect, test } from "@playwright/test";
import { ringlet } from "./cli";

const oneSentence = (text: string) => expect(text.trim().split("\n")).toHaveLength(1);

test("every command has a help that names its options", async () => {
  for (const [command, option] of [
    ["serve", "--port"],
    ["train", "--learning-rate"],
    ["run", "--peers"],
  ] as const) {
    const { code, stdout } = await ringlet(command, "--help");
    expect(code).toBe(0);
    expect(stdout).toContain(option);
    expect(stdout).toContain("Usage: ringlet");
  }
});

test("an unknown option or an impossible value is one sentence and exit code 2", async () => {
  for (const args of [
    ["serve", "--colour"],
    ["serve", "--port", "99999"],
    ["train", "mnist", "--peers", "0"],
    ["train", "mnist", "--batch", "many"],
    ["train", "mnist", "--optimizer", "magic"],
    ["train", "mnist", "--learning-rate", "-1"],
    ["train", "cifar"],
    ["train", "mnist", "--optimizer", "adam", "--momentum", "0.9"],
    ["run", "no-such-script.ts"],
    ["fly"],
  ]) {
    const { code, stdout, stderr } = await ringlet(...args);
    expect(code, `ringlet ${args.join(" ")}: ${stderr}`).toBe(2);
    expect(stdout).toBe("");
    oneSentence(stderr);
  }
});

test("a taken port is one sentence and exit code 1", async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
  const address = blocker.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const { code, stderr } = await ringlet("serve", "--port", String(port), "--https-port", "0", "--stun-port", "0");
  blocker.close();
  expect(code).toBe(1);
  oneSentence(stderr);
  expect(stderr).toContain(String(port));
});

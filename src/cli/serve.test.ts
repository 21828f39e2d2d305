import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";

const children: ChildProcess[] = [];
const ringlet = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", ...args], {
    env: { ...process.env, ...environment },
  });
  children.push(child);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    err += chunk;
  });
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, out, err }));
  });
  return { child, ended, output: () => out };
};
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

describe("wrong usage is one sentence and exit code 2:", { timeout: 60_000 }, () => {
  test.each([
    [["serve", "--prot", "3"], "Unknown option '--prot': did you mean --port?"],
    [["serve", "--port", "70000"], '--port takes an integer of 0 to 65535, not "70000".'],
    [["serve", "now"], "Too many arguments for 'serve', expected 0 arguments but got 1: see --help."],
    [["sevre"], "Unknown command 'sevre': did you mean serve?"],
  ])("%j", async (args, sentence) => {
    expect(await ringlet(args).ended).toEqual({ code: 2, out: "", err: `${sentence}\n` });
  });

  test("malformed ICE servers", async () => {
    const { ended } = ringlet(["serve", "--port", "0"], { RINGLET_ICE_SERVERS: "[1]" });
    expect(await ended).toEqual({ code: 2, out: "", err: "Entry 1 of RINGLET_ICE_SERVERS is not an object.\n" });
  });
});

test("serve --help names every option and variable", { timeout: 60_000 }, async () => {
  const { code, out } = await ringlet(["serve", "--help"]).ended;
  expect(code).toBe(0);
  for (const name of [
    "--port",
    "--https-port",
    "--stun-port",
    "--host",
    "--dev",
    "RINGLET_ICE_SERVERS",
    "RINGLET_CACHE",
  ])
    expect(out).toContain(name);
});

test("a taken port is one sentence and exit code 1", { timeout: 60_000 }, async () => {
  const other = createServer();
  await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const { ended } = ringlet(["serve", "--dev", "--port", String(port), "--https-port", "0", "--stun-port", "0"]);
  expect(await ended).toEqual({
    code: 1,
    out: "",
    err: `Port ${port} is already in use at 127.0.0.1: stop what uses it, or choose another port with --port.\n`,
  });
  await new Promise((done) => other.close(done));
});

test("serve --dev serves until it is told to stop, and ends with 0", { timeout: 60_000 }, async () => {
  const { child, ended, output } = ringlet(["serve", "--dev", "--port", "0", "--https-port", "0", "--stun-port", "0"]);
  await expect.poll(output, { timeout: 50_000 }).toContain("Stop with Ctrl+C.");
  const [url = ""] = /http:\/\/localhost:\d+\//.exec(output()) ?? [];
  expect((await (await fetch(`${url}ringlet.json`)).json()).signalingPath).toBe("/signal");
  child.kill("SIGINT");
  expect((await ended).code).toBe(0);
});

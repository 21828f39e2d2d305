import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { env } from "./environment";
import { environmentTable, unknownNames } from "./environmentTable";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const secret = "AAECAwQFBgcICQoLDA0ODw";

describe("the environment", () => {
  test("is what ringlet run sets", () => {
    vi.stubGlobal("__ringletEnvironment", {
      RANK: "2",
      WORLD_SIZE: "3",
      MASTER_PORT: "7373",
      RINGLET_TIMEOUT: "2.5",
      arguments: ["--epochs", "2"],
    });
    expect([env.RANK, env.WORLD_SIZE, env.MASTER_ADDR, env.MASTER_PORT]).toEqual([2, 3, "localhost", 7373]);
    expect([env.RINGLET_TIMEOUT, env.RINGLET_BACKEND]).toEqual([2.5, "webrtc"]);
    expect(env.arguments).toEqual(["--epochs", "2"]);
  });

  test("is what the page's address says, in capitals or not, the secret after #", () => {
    vi.stubGlobal(
      "location",
      new URL(
        `http://example.org:80/x?rank=1&world_size=4&RINGLET_JOB=j&argument=a&argument=b#ringlet_secret=${secret}`,
      ),
    );
    expect([env.RANK, env.WORLD_SIZE, env.RINGLET_JOB, env.RINGLET_SECRET]).toEqual([1, 4, "j", secret]);
    expect([env.MASTER_ADDR, env.MASTER_PORT]).toEqual(["example.org", 80]);
    expect(env.arguments).toEqual(["a", "b"]);
  });

  test("is the process's where there is no page", () => {
    vi.stubEnv("RANK", "1");
    vi.stubEnv("WORLD_SIZE", "2");
    expect([env.RANK, env.WORLD_SIZE]).toEqual([1, 2]);
  });

  test("is a world of one without any", () => {
    expect([env.RANK, env.WORLD_SIZE, env.arguments]).toEqual([0, 1, []]);
  });

  test.each([
    ["RANK", "first", 'RANK must be an integer from 0, got "first".'],
    ["RANK", "-1", 'RANK must be an integer from 0, got "-1".'],
    ["WORLD_SIZE", "0", 'WORLD_SIZE must be an integer from 1, got "0".'],
    ["WORLD_SIZE", "2.5", 'WORLD_SIZE must be an integer from 1, got "2.5".'],
    ["MASTER_PORT", "http", 'MASTER_PORT must be an integer from 0, got "http".'],
    ["RINGLET_TIMEOUT", "soon", 'RINGLET_TIMEOUT must be a number of seconds from 0.001, got "soon".'],
    ["RINGLET_SECRET", "short", "RINGLET_SECRET must be 16 bytes as 22 characters of base64url, got 5 characters."],
  ] as const)("refuses %s=%s with one sentence", (name, value, sentence) => {
    vi.stubGlobal("__ringletEnvironment", { [name]: value });
    expect(() => env[name]).toThrow(sentence);
  });

  test("warns of an unknown RINGLET_ name once, with what may be meant", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    vi.stubGlobal("__ringletEnvironment", { RINGLET_TIMEOT: "3", PATH: "x", ringlet_colour: "red" });
    expect([env.RANK, env.RANK]).toEqual([0, 0]);
    expect(warn.mock.calls).toEqual([
      ["Nothing reads RINGLET_TIMEOT: did you mean RINGLET_TIMEOUT?"],
      ["Nothing reads ringlet_colour; docs/environment.md lists what is read."],
    ]);
  });

  test("knows every name that it reads", () => {
    expect(unknownNames(environmentTable.map(({ name }) => name))).toEqual([]);
  });
});

test("docs/environment.md shows the table", () => {
  const docs = readFileSync(new URL("../../docs/environment.md", import.meta.url), "utf8");
  // The formatter pads the table's columns.
  const rows = docs.split("\n").filter((line) => line.startsWith("| `"));
  expect(rows.map((row) => row.replaceAll(/ {2,}/g, " "))).toEqual(
    environmentTable.map(
      ({ name, reader, byDefault, effect }) =>
        `| \`${name}\` | ${reader === "rank" ? "ranks" : "`ringlet`"} | ${byDefault} | ${effect} |`,
    ),
  );
});

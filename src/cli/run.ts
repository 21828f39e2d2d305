import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Command, Option } from "commander";
import type { ConsoleMessage, Page } from "playwright-core";
import { messageOf } from "../base/messageOf";
import { packageRoot } from "../server/packageRoot";
import { startServer } from "../server/server";
import { iceServersFromEnvironment, integerFrom } from "./options";
import type { AdapterChoice } from "./tabs";
import { UserError } from "./userError";

interface RunOptions {
  readonly peers: number;
  readonly adapter: AdapterChoice;
}

/** `ringlet run SCRIPT`: what torchrun is to PyTorch. */
export function runCommand(): Command {
  return new Command("run")
    .description(
      "Run a TypeScript or JavaScript module that imports `ringlet` in N headless tabs, as torchrun does for PyTorch.",
    )
    .argument("<script>", "the module; it reads RANK, WORLD_SIZE and its arguments from dist.env")
    .argument("[arguments...]", "given to the script, after --")
    .option("--peers <n>", "tabs, which is the world size", integerFrom("--peers", 1, 64), 1)
    .addOption(
      new Option("--adapter <kind>", "the WebGPU adapter that the tabs use")
        .choices(["auto", "hardware", "software"])
        .default("auto"),
    )
    .addHelpText(
      "after",
      "\nWhat a tab logs is printed with its rank in front. The exit code is 0 when every tab's module ends, and\n" +
        "otherwise the first failing tab's: its error's `exitCode`, or 1.\n\n" +
        "Example:\n  ringlet run train.ts --peers 3 -- --epochs 2",
    )
    .action(async (script: string, scriptArguments: string[], options: RunOptions) => {
      process.exitCode = await runScript(script, scriptArguments, options);
    });
}

interface Outcome {
  readonly rank: number;
  readonly code: number;
}

async function runScript(script: string, scriptArguments: readonly string[], options: RunOptions): Promise<number> {
  const code = await bundle(script);
  const server = await startServer({
    port: 0,
    httpsPort: null,
    stunPort: 0,
    iceServers: iceServersFromEnvironment(),
    pages: { "/run/": { type: "text/html", body: runPage }, "/run/script.js": { type: "text/javascript", body: code } },
  });
  const { openBrowser } = await import("./tabs");
  const browser = await openBrowser(options.adapter, server.localUrl).catch(async (error: unknown) => {
    await server.close();
    throw error;
  });
  try {
    const { hostname, port } = new URL(server.localUrl);
    const shared = {
      WORLD_SIZE: String(options.peers),
      MASTER_ADDR: hostname,
      MASTER_PORT: port,
      RINGLET_JOB: randomHex(8),
      RINGLET_SECRET: Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64url"),
    };
    const runRank = (rank: number) =>
      new Promise<Outcome>((ended, failed) => {
        const prepare = async (page: Page) => {
          printLogs(page, rank);
          page.on("crash", () => ended({ rank, code: 1 }));
          await page.exposeFunction("ringletEnded", (code: number, message: string) => {
            if (message) printLines(rank, message, process.stderr);
            ended({ rank, code });
          });
          await page.addInitScript(
            (environment) => {
              Object.assign(globalThis, { __ringletEnvironment: environment });
            },
            { ...shared, RANK: String(rank), arguments: [...scriptArguments] },
          );
        };
        browser.openTab(`${server.localUrl}run/`, prepare).catch(failed);
      });
    return await firstFailureOrSuccess(Array.from({ length: options.peers }, (_, rank) => runRank(rank)));
  } finally {
    await browser.close();
    await server.close();
  }
}

/** 0 when all succeed; the code of whichever fails first, without waiting for the others, as torchrun does. */
function firstFailureOrSuccess(runs: readonly Promise<Outcome>[]): Promise<number> {
  const failure = Promise.any(
    runs.map(async (run) => {
      const { code, rank } = await run;
      if (code === 0) throw new Error(`rank ${rank} succeeded`);
      return code;
    }),
  );
  return failure.catch(() => 0);
}

const randomHex = (bytes: number): string => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");

function printLines(rank: number, text: string, stream: NodeJS.WriteStream): void {
  for (const line of text.split("\n")) stream.write(`[${rank}] ${line}\n`);
}

function printLogs(page: Page, rank: number): void {
  page.on("console", (message: ConsoleMessage) => {
    const toStderr = message.type() === "error" || message.type() === "warning";
    printLines(rank, message.text(), toStderr ? process.stderr : process.stdout);
  });
}

/** The user's module with `ringlet` and everything else that it imports, as one ES module. */
async function bundle(script: string): Promise<string> {
  const path = resolve(script);
  if (!existsSync(path)) throw new UserError(`There is no script ${path}.`, 2);
  const library = join(packageRoot, "dist/lib/ringlet.js");
  if (!existsSync(library)) throw new UserError("The library is not built; run `npm run build` first.");
  // Loaded here, since every command would wait for it otherwise.
  const { build } = await import("vite");
  try {
    const result = await build({
      configFile: false,
      root: dirname(path),
      logLevel: "silent",
      publicDir: false,
      resolve: { alias: { ringlet: library } },
      build: {
        write: false,
        target: "esnext",
        minify: false,
        sourcemap: "inline",
        lib: { entry: path, formats: ["es"], fileName: "script" },
        rolldownOptions: { output: { codeSplitting: false } },
      },
    });
    const outputs = (Array.isArray(result) ? result : [result]).flatMap((one) => ("output" in one ? one.output : []));
    const chunk = outputs.find((output) => output.type === "chunk" && output.isEntry);
    if (chunk?.type !== "chunk") throw new Error("the bundle is empty");
    return chunk.code;
  } catch (error) {
    throw new UserError(`${path} can't be bundled: ${messageOf(error)}`);
  }
}

/** Loads the script and tells the command line how it ended. */
const runPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>ringlet run</title><link rel="icon" href="data:,"></head>
<body>
<script type="module">
const describe = (error) => error instanceof Error ? error.stack ?? String(error) : String(error);
const codeOf = (error) => Number.isInteger(error?.exitCode) && error.exitCode > 0 ? error.exitCode : 1;
addEventListener("error", (event) => ringletEnded(codeOf(event.error), describe(event.error ?? event.message)));
addEventListener("unhandledrejection", (event) => ringletEnded(codeOf(event.reason), describe(event.reason)));
try {
  await import("/run/script.js");
  await ringletEnded(0, "");
} catch (error) {
  await ringletEnded(codeOf(error), describe(error));
}
</script>
</body>
</html>
`;

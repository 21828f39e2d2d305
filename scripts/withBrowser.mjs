// Runs a command with RINGLET_BROWSER set to an installed browser, and RINGLET_FIREFOX to a Firefox where the command needs it:
// `node scripts/withBrowser.mjs vitest run`.
import { spawn } from "node:child_process";
import { delimiter, resolve } from "node:path";
import { ensureBrowser, ensureFirefox } from "./browser.mjs";

const [command, ...args] = process.argv.slice(2);
const PATH = `${resolve("node_modules/.bin")}${delimiter}${process.env.PATH}`;
const child = spawn(command, args, {
  stdio: "inherit",
  env: {
    ...process.env,
    PATH,
    RINGLET_BROWSER: await ensureBrowser(),
    ...(command === "playwright" || args.includes("firefox") ? { RINGLET_FIREFOX: ensureFirefox() } : {}),
  },
});
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));

// Everything that must hold, in one command: types, lint, layers, build, unit, GPU and end-to-end tests.
// `--full` adds what takes longer. The last line is `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { ensureBrowser, ensureFirefox } from "./browser.mjs";

const full = process.argv.includes("--full");
const reports = mkdtempSync(join(tmpdir(), "ringlet-test-"));
const env = {
  ...process.env,
  PATH: `${resolve("node_modules/.bin")}${delimiter}${process.env.PATH}`,
  RINGLET_BROWSER: await ensureBrowser(),
  RINGLET_FIREFOX: ensureFirefox(),
  VITE_CONFIG_NATIVE_IGNORE_WARNING: "true",
  ...(full ? { RINGLET_TEST_FULL: "1" } : {}),
};

const run = (title, command, args, extra = {}) => {
  const began = Date.now();
  console.log(`\n── ${title}`);
  const { status } = spawnSync(command, args, { stdio: "inherit", env: { ...env, ...extra } });
  console.log(
    `── ${title}: ${status === 0 ? "ok" : `failed (exit ${status})`}, ${Math.round((Date.now() - began) / 1000)} s`,
  );
  return status === 0;
};

const readReport = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
};

const runVitest = (title, project) => {
  const path = join(reports, `${project}.json`);
  const ok = run(title, "vitest", [
    "run",
    "--project",
    project,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${path}`,
  ]);
  const report = readReport(path);
  const skipped = report ? report.numPendingTests + (report.numTodoTests ?? 0) : 0;
  return { title, ok, passed: report?.numPassedTests ?? 0, failed: report?.numFailedTests ?? 0, skipped };
};

const runPlaywright = (title) => {
  const path = join(reports, "e2e.json");
  const ok = run(title, "playwright", ["test", "--reporter=list,json"], { PLAYWRIGHT_JSON_OUTPUT_FILE: path });
  const { expected = 0, unexpected = 0, flaky = 0, skipped = 0 } = readReport(path)?.stats ?? {};
  return { title, ok, passed: expected, failed: unexpected + flaky, skipped };
};

const runCheck = (title, command, args) => ({ title, ok: run(title, command, args), passed: 0, failed: 0, skipped: 0 });

const results = [
  runCheck("types", "tsc", ["--noEmit"]),
  runCheck("lint and format", "biome", ["check", "."]),
  runCheck("layers", "node", ["scripts/checkLayers.mjs"]),
  runCheck("build", "node", ["scripts/build.mjs"]),
  runVitest("unit tests (Node)", "unit"),
  runVitest("GPU tests (Chromium)", "browser"),
  runVitest(full ? "GPU tests (Firefox)" : "GPU tests (Firefox, a part)", "firefox"),
  runPlaywright("end-to-end tests"),
];
rmSync(reports, { recursive: true, force: true });

console.log("");
let passed = 0;
let failed = 0;
for (const result of results) {
  passed += result.passed;
  // A part that fails without a failing test (a type error, a crashed runner) or that skips counts as one failure.
  const problems = result.failed > 0 ? result.failed : result.ok && result.skipped === 0 ? 0 : 1;
  failed += problems;
  if (problems > 0) {
    const why =
      result.skipped > 0 && result.ok ? `${result.skipped} skipped, and nothing may be` : `${result.failed} tests`;
    console.log(`failed: ${result.title} (${why})`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

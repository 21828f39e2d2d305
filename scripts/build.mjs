// Builds everything that is shipped, side by side: the pages, the library with its types, and the command line.
import { spawn } from "node:child_process";
import { chmodSync, readFileSync, rmSync } from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const manifest = JSON.parse(readFileSync(resolve(root, "package.json"), "utf8"));
const packages = [...Object.keys(manifest.dependencies), ...builtinModules];
/** Dependencies stay imports: npm installs them next to us. */
const isExternal = (id) => id.startsWith("node:") || packages.some((name) => id === name || id.startsWith(`${name}/`));

const shared = { root, logLevel: "warn", configFile: false };
const oxc = { jsx: { runtime: "automatic", importSource: "preact" } };

const page = () => build({ root, logLevel: "warn", configFile: resolve(root, "vite.config.ts") });

const library = () =>
  build({
    ...shared,
    oxc,
    publicDir: false,
    worker: { format: "es" },
    build: {
      target: "es2023",
      outDir: "dist/lib",
      emptyOutDir: true,
      sourcemap: true,
      minify: false,
      reportCompressedSize: false,
      lib: { entry: "src/index.ts", formats: ["es"], fileName: () => "ringlet.js" },
      rolldownOptions: { external: isExternal },
    },
  });

const commandLine = async () => {
  await build({
    ...shared,
    publicDir: false,
    build: {
      ssr: "src/cli/main.ts",
      target: "node20",
      outDir: "dist/cli",
      emptyOutDir: true,
      sourcemap: true,
      reportCompressedSize: false,
      rolldownOptions: {
        external: isExternal,
        output: { entryFileNames: "ringlet.js", chunkFileNames: "[name]-[hash].js", banner: "#!/usr/bin/env node" },
      },
    },
  });
  chmodSync(resolve(root, "dist/cli/ringlet.js"), 0o755);
};

/** TypeScript's own compiler writes the library's declarations. */
const types = () =>
  new Promise((done, fail) => {
    rmSync(resolve(root, "dist/types"), { recursive: true, force: true });
    const package_ = createRequire(import.meta.url).resolve("typescript/package.json");
    const compiler = resolve(dirname(package_), JSON.parse(readFileSync(package_, "utf8")).bin.tsc);
    const child = spawn(process.execPath, [compiler, "-p", resolve(root, "scripts/tsconfig.types.json")], {
      cwd: root,
      stdio: "inherit",
    });
    child.on("error", fail);
    child.on("exit", (code) => (code === 0 ? done() : fail(new Error("The library's types do not compile."))));
  });

const parts = { page, library, "command line": commandLine, types };
const began = performance.now();
const results = await Promise.allSettled(Object.values(parts).map((part) => part()));
let failed = 0;
for (const [index, result] of results.entries()) {
  if (result.status === "fulfilled") continue;
  failed += 1;
  console.error(`The build of the ${Object.keys(parts)[index]} failed: ${result.reason?.message ?? result.reason}`);
}
if (failed > 0) process.exit(1);
console.log(`built in ${((performance.now() - began) / 1000).toFixed(1)} s`);

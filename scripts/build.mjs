// Builds everything that is shipped, side by side: the pages, the library with its types, and the command line.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
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
const types = async () => {
  const folder = resolve(root, "dist/types");
  rmSync(folder, { recursive: true, force: true });
  const manifestPath = createRequire(import.meta.url).resolve("typescript/package.json");
  const compiler = resolve(dirname(manifestPath), JSON.parse(readFileSync(manifestPath, "utf8")).bin.tsc);
  await new Promise((done, fail) => {
    const child = spawn(process.execPath, [compiler, "-p", resolve(root, "scripts/tsconfig.types.json")], {
      cwd: root,
      stdio: "inherit",
    });
    child.on("error", fail);
    child.on("exit", (code) =>
      code === 0 ? done() : fail(new Error("TypeScript found errors in the library's sources.")),
    );
  });
  for (const entry of readdirSync(folder, { recursive: true })) {
    const file = join(folder, entry);
    if (file.endsWith(".d.ts")) writeFileSync(file, withExtensions(readFileSync(file, "utf8"), dirname(file)));
  }
};

/** The sources import without extensions; users whose TypeScript resolves as Node does need them. */
const withExtensions = (declarations, folder) =>
  declarations.replace(/(?<=from |import\(|import )"(\.[^"]*)"/g, (specifier, path) => {
    const endings = [".js", "/index.js"];
    const ending = endings.find((end) => existsSync(resolve(folder, path + end.replace(".js", ".d.ts"))));
    return ending ? `"${path}${ending}"` : specifier;
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

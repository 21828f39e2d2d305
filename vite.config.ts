import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const root = fileURLToPath(new URL(".", import.meta.url));
const pages = ["index.html", "headless.html"].map((name) => resolve(root, name)).filter((page) => existsSync(page));

/** The pages: built into dist/page, and served with hot reload by `npm run dev`. */
export default defineConfig({
  root,
  resolve: { alias: { ringlet: resolve(root, "src/index.ts") } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  build: {
    target: "es2023",
    outDir: "dist/page",
    emptyOutDir: true,
    sourcemap: true,
    reportCompressedSize: false,
    rolldownOptions: { input: pages },
  },
});

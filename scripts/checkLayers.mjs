// Fails when an import points up: the folders of src/ are layers (docs/architecture.md).
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Each layer with the layers it may import besides itself. */
const mayImport = {
  base: [],
  data: ["base"],
  gpu: ["base"],
  tensor: ["base", "gpu"],
  nn: ["base", "gpu", "tensor"],
  optim: ["base", "gpu", "tensor"],
  transport: ["base"],
  distributed: ["base", "transport", "tensor", "nn", "optim", "gpu"],
  job: ["base", "data", "gpu", "tensor", "nn", "optim", "transport", "distributed"],
  worker: ["base", "data", "gpu", "tensor", "nn", "optim", "transport", "distributed", "job"],
  dashboard: ["base", "data", "job", "transport", "worker"],
  server: ["base", "data"],
  cli: ["base", "data", "distributed", "job", "server", "worker"],
};
const source = resolve("src");
const shaders = resolve("shaders");
const files = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? files(join(folder, entry.name))
      : /\.tsx?$/.test(entry.name)
        ? [join(folder, entry.name)]
        : [],
  );
const layerOf = (path) => {
  const parts = relative(source, path).split(/[\\/]/);
  return parts.length > 1 || parts[0] in mayImport ? parts[0] : "index";
};
const problems = [];
let count = 0;
for (const file of files(source)) {
  const layer = layerOf(file);
  if (layer === "index") continue;
  if (!(layer in mayImport))
    problems.push(`${relative(".", file)}: the folder ${layer} is not a layer in scripts/checkLayers.mjs`);
  for (const [, specifier] of readFileSync(file, "utf8").matchAll(
    /(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g,
  )) {
    const target = resolve(dirname(file), specifier);
    count += 1;
    if (target.startsWith(shaders)) {
      if (layer !== "gpu" && layer !== "tensor" && layer !== "optim" && layer !== "distributed")
        problems.push(`${relative(".", file)}: only the engine's layers import shaders`);
      continue;
    }
    if (!target.startsWith(source)) continue;
    const other = layerOf(target);
    if (other !== layer && !mayImport[layer]?.includes(other))
      problems.push(`${relative(".", file)}: ${layer}/ may not import ${other}/ (${specifier})`);
  }
}
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`layers: ${count} imports, all point down`);

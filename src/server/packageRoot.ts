import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const isOurs = (manifest: string) => {
  const parsed: unknown = JSON.parse(readFileSync(manifest, "utf8"));
  return typeof parsed === "object" && parsed !== null && "name" in parsed && parsed.name === "ringlet";
};

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest) && isOurs(manifest)) return folder;
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`No package.json of Ringlet lies above ${fileURLToPath(import.meta.url)}.`);
    folder = parent;
  }
}

/** The folder of Ringlet's package.json, whether this file runs from src/ or bundled into dist/. */
export const packageRoot = findRoot();

/** Ringlet's version, as its package.json has it. */
export function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  if (typeof parsed === "object" && parsed !== null && "version" in parsed && typeof parsed.version === "string")
    return parsed.version;
  throw new Error("Ringlet's package.json has no version.");
}

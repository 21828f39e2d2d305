import { randomUUID } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where what was made once is kept: `RINGLET_CACHE`, else the platform's cache folder. */
export function defaultCacheFolder(environment: Environment = process.env, platform = process.platform): string {
  if (environment.RINGLET_CACHE) return environment.RINGLET_CACHE;
  // The XDG specification has relative paths ignored.
  const xdg = environment.XDG_CACHE_HOME;
  if (xdg && isAbsolute(xdg)) return join(xdg, "ringlet");
  if (platform === "win32" && environment.LOCALAPPDATA) return join(environment.LOCALAPPDATA, "ringlet", "cache");
  if (platform === "darwin") return join(homedir(), "Library", "Caches", "ringlet");
  return join(homedir(), ".cache", "ringlet");
}

/** Writes a file at one stroke, so that a second server that starts at the same moment never reads half of it. */
export async function writeWhole(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await writeFile(unfinished, content, { mode });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

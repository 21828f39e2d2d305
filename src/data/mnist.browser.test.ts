import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { loadMnist } from "./mnist";
import { assetName, idxBytes, type MnistAsset, type MnistPart, mnistFiles, mnistParts, mnistPath } from "./mnistFiles";

const files = new Map<string, Uint8Array<ArrayBuffer>>();
/** Names asked of the server, in order. */
const asked: string[] = [];
const baseUrl = "https://ringlet.test";
const trainImages = assetName("trainImages");

async function sha256(bytes: Uint8Array<ArrayBuffer>) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A file of the part's form; what the digits look like plays no part here. */
function idx(part: MnistPart) {
  const { shape } = mnistFiles[part];
  const bytes = new Uint8Array(idxBytes(part));
  for (let index = 0; index < bytes.length; index++) bytes[index] = index % 10;
  const header = new DataView(bytes.buffer);
  header.setUint32(0, 0x0800 | shape.length);
  for (const [dimension, size] of shape.entries()) header.setUint32(4 + 4 * dimension, size);
  return bytes;
}

beforeAll(async () => {
  const manifest = new Map<MnistPart, MnistAsset>();
  for (const part of mnistParts) {
    const stream = new Blob([idx(part)]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    files.set(assetName(part), bytes);
    manifest.set(part, { name: assetName(part), bytes: bytes.length, sha256: await sha256(bytes) });
  }
  files.set("manifest.json", new TextEncoder().encode(JSON.stringify(Object.fromEntries(manifest))));
  await caches.delete("ringlet-mnist");
});

/** Stands in for the network: answers as the server does, from the files above. */
function serve(altered: ReadonlyMap<string, Uint8Array<ArrayBuffer>> = new Map()) {
  asked.length = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const name = String(input).slice(`${baseUrl}${mnistPath}`.length);
    asked.push(name);
    const bytes = altered.get(name) ?? files.get(name);
    return bytes ? new Response(bytes) : new Response("Not here.", { status: 404 });
  });
}
afterEach(() => {
  vi.restoreAllMocks();
});

const alter = (name: string) => {
  const bytes = Uint8Array.from(files.get(name) ?? []);
  bytes[1000]! ^= 1;
  return bytes;
};

test("MNIST is downloaded once and then comes from the browser's cache, a damaged entry being fetched anew", async () => {
  serve(new Map([[trainImages, alter(trainImages)]]));
  await expect(loadMnist({ baseUrl })).rejects.toThrow(`${trainImages} was altered on its way`);

  serve();
  const first = await loadMnist({ baseUrl });
  expect(asked).toContain(trainImages);
  expect([...first.train.labels.subarray(0, 8)]).toEqual([8, 9, 0, 1, 2, 3, 4, 5]);

  serve();
  const progress: (readonly [number, number])[] = [];
  const second = await loadMnist({ baseUrl, onProgress: (...report) => progress.push(report) });
  expect(asked).toEqual(["manifest.json"]);
  const images = await sha256(first.train.images);
  expect(await sha256(second.train.images)).toBe(images);
  const [loaded, total] = progress.at(-1) ?? [];
  expect(loaded).toBe(total);

  const cache = await caches.open("ringlet-mnist");
  await cache.put(`${baseUrl}${mnistPath}${trainImages}`, new Response(alter(trainImages)));
  serve();
  const third = await loadMnist({ baseUrl });
  expect(asked).toEqual(["manifest.json", trainImages]);
  expect(await sha256(third.train.images)).toBe(images);

  serve();
  await loadMnist({ baseUrl });
  expect(asked).toEqual(["manifest.json"]);
});

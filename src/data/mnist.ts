import { messageOf } from "../base/messageOf";
import { parseIdx } from "./idx";
import {
  idxBytes,
  type MnistAsset,
  type MnistManifest,
  type MnistPart,
  mnistFiles,
  mnistPath,
  readMnistManifest,
} from "./mnistFiles";

/** Digits with their labels, as MNIST has them. */
export interface LabelledImages {
  readonly count: number;
  readonly rows: 28;
  readonly columns: 28;
  /** `[count, 28, 28]`, row-major; 0 is paper, 255 is ink. */
  readonly images: Uint8Array<ArrayBuffer>;
  /** `[count]`, each 0 to 9. */
  readonly labels: Uint8Array<ArrayBuffer>;
}

export interface Mnist {
  /** 60,000 digits. */
  readonly train: LabelledImages;
  /** 10,000 digits, from other writers. */
  readonly validation: LabelledImages;
}

export interface LoadMnistOptions {
  /** Origin of the server that has the assets, such as `location.origin`. */
  readonly baseUrl: string;
  /** Called with the compressed bytes there so far, and of all. */
  readonly onProgress?: (loaded: number, total: number) => void;
}

const cacheName = "ringlet-mnist";

/**
 * MNIST from the server, or from the browser's cache where an earlier visit left it. Length and SHA-256 of every file
 * are checked, wherever it comes from; a damaged entry of the cache is fetched anew.
 *
 * @throws a sentence when the server can't be reached, or a file is truncated or altered.
 */
export async function loadMnist({ baseUrl, onProgress }: LoadMnistOptions): Promise<Mnist> {
  if (crypto.subtle === undefined)
    throw new Error(
      "The data set can't be checked, since this page is not in a secure context: open it over https or at localhost.",
    );
  const folder = new URL(mnistPath, baseUrl);
  const manifest = await fetchManifest(new URL("manifest.json", folder));
  const cache = await openCache();
  const progress = new Progress(manifest, onProgress);

  const load = async (part: MnistPart) => {
    const asset = manifest[part];
    const compressed = await obtain(new URL(asset.name, folder), asset, cache, (bytes) => progress.report(part, bytes));
    return parseIdx(await inflate(compressed, idxBytes(part), asset.name), mnistFiles[part].shape, asset.name).data;
  };
  const [trainImages, trainLabels, validationImages, validationLabels] = await Promise.all([
    load("trainImages"),
    load("trainLabels"),
    load("validationImages"),
    load("validationLabels"),
  ]);
  return { train: labelled(trainImages, trainLabels), validation: labelled(validationImages, validationLabels) };
}

function labelled(images: Uint8Array<ArrayBuffer>, labels: Uint8Array<ArrayBuffer>): LabelledImages {
  return { count: labels.length, rows: 28, columns: 28, images, labels };
}

/** Adds up what the files, which load side by side, have so far. */
class Progress {
  readonly #loaded = new Map<MnistPart, number>();
  readonly #total: number;
  readonly #onProgress: ((loaded: number, total: number) => void) | undefined;

  constructor(manifest: MnistManifest, onProgress: ((loaded: number, total: number) => void) | undefined) {
    this.#total = Object.values(manifest).reduce((total, asset) => total + asset.bytes, 0);
    this.#onProgress = onProgress;
  }

  report(part: MnistPart, bytes: number) {
    this.#loaded.set(part, bytes);
    const loaded = [...this.#loaded.values()].reduce((sum, value) => sum + value, 0);
    this.#onProgress?.(loaded, this.#total);
  }
}

/** The asset's bytes, checked; from the cache if they are there intact. */
async function obtain(
  url: URL,
  asset: MnistAsset,
  cache: Cache | null,
  report: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const cached = await cache?.match(url);
  if (cached) {
    const bytes = new Uint8Array(await cached.arrayBuffer());
    if ((await defect(bytes, asset)) === null) {
      report(bytes.byteLength);
      return bytes;
    }
    await cache?.delete(url);
  }
  const bytes = await download(url, asset, report);
  const problem = await defect(bytes, asset);
  if (problem !== null) throw new Error(`${problem} Reload the page to fetch it again.`);
  // A full disk or a private window may refuse it: then the next visit downloads again, which is all that is lost.
  await cache?.put(url, new Response(bytes)).catch(() => {});
  return bytes;
}

/** What is wrong with the bytes, as a sentence; null when they are the asset's. */
async function defect(bytes: Uint8Array<ArrayBuffer>, asset: MnistAsset): Promise<string | null> {
  if (bytes.byteLength !== asset.bytes)
    return `${asset.name} is truncated: ${bytes.byteLength} of its ${asset.bytes} bytes arrived.`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return sha256 === asset.sha256 ? null : `${asset.name} was altered on its way: its SHA-256 is not the server's.`;
}

async function download(
  url: URL,
  asset: MnistAsset,
  report: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const response = await get(url);
  const bytes = new Uint8Array(asset.bytes);
  const loaded = await fill(bytes, response.body, report).catch((error: unknown) => {
    throw new Error(`The download of ${asset.name} broke off (${messageOf(error)}). Reload the page to try again.`);
  });
  if (loaded > bytes.byteLength)
    throw new Error(`${asset.name} was altered on its way: more than its ${asset.bytes} bytes arrived.`);
  return bytes.subarray(0, loaded);
}

async function inflate(compressed: Uint8Array<ArrayBuffer>, length: number, name: string) {
  const bytes = new Uint8Array(length);
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const loaded = await fill(bytes, stream).catch((error: unknown) => {
    throw new Error(`${name} could not be decompressed (${messageOf(error)}).`);
  });
  if (loaded !== length) throw new Error(`${name} does not hold the ${length} bytes that MNIST has there.`);
  return bytes;
}

/** Reads a stream into `target`; returns the bytes read, which is more than `target` holds when it overflowed. */
async function fill(
  target: Uint8Array,
  stream: ReadableStream<Uint8Array> | null,
  report?: (bytes: number) => void,
): Promise<number> {
  const reader = stream?.getReader();
  let loaded = 0;
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    if (loaded + value.byteLength > target.byteLength) {
      await reader.cancel();
      return loaded + value.byteLength;
    }
    target.set(value, loaded);
    loaded += value.byteLength;
    report?.(loaded);
  }
  return loaded;
}

async function fetchManifest(url: URL): Promise<MnistManifest> {
  const text = await (await get(url)).text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`The list of MNIST's files at ${url} is not JSON.`);
  }
  return readMnistManifest(value);
}

async function get(url: URL): Promise<Response> {
  // The files have a cache of their own, and a second copy in the browser's would only take room.
  const response = await fetch(url, { cache: "no-store" }).catch((error: unknown) => {
    throw new Error(`${url} can't be reached (${messageOf(error)}): is the Ringlet server still running?`);
  });
  if (!response.ok) {
    const answer = (await response.text()).trim();
    throw new Error(`The server answered ${response.status} to ${url}${answer ? `: ${answer}` : "."}`);
  }
  return response;
}

/** Null where there is no cache: in Node, and where a browser's settings forbid it. */
async function openCache(): Promise<Cache | null> {
  if (!("caches" in globalThis)) return null;
  return caches.open(cacheName).catch(() => null);
}

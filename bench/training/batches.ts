import { seededRandom } from "../../src/base/seededRandom";
import { parseIdx } from "../../src/data/idx";
import { mnistFiles } from "../../src/data/mnistFiles";
import type { BatchInput } from "./workloads";

/** Where the bench's server has MNIST's IDX files, below its origin. */
export const mnistAssetPath = "/bench-mnist";

/**
 * A batch of a workload's input. Digits: pixels between 0 and 1, row-major, which is NCHW and NHWC alike, and a label
 * from 0 to 9 for each. Tokens: ids, and the id that follows each.
 */
export interface Batch {
  readonly inputs: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>;
  readonly labels: Int32Array<ArrayBuffer>;
}

/**
 * The first `count` batches: of MNIST's training set in its own order, or of seeded text.
 * @param origin of the bench's server, which has the digits.
 */
export function loadBatches(
  { kind, shape }: BatchInput,
  count: number,
  vocabulary: number,
  origin: string,
): Promise<Batch[]> {
  switch (kind) {
    case "digits":
      return loadDigits(count, shape[0], origin);
    case "tokens":
      return Promise.resolve(makeTokens(count, shape[0] * shape[1], vocabulary));
  }
}

const pixels = 28 * 28;

async function loadDigits(count: number, size: number, origin: string): Promise<Batch[]> {
  const images = await fetchIdx("trainImages", origin);
  const labels = await fetchIdx("trainLabels", origin);
  if (count * size > labels.length) throw new RangeError(`MNIST has no ${count} batches of ${size} digits.`);
  return Array.from({ length: count }, (_, index) => {
    const first = index * size;
    return {
      inputs: Float32Array.from(images.subarray(first * pixels, (first + size) * pixels), (value) => value / 255),
      labels: Int32Array.from(labels.subarray(first, first + size)),
    };
  });
}

async function fetchIdx(part: "trainImages" | "trainLabels", origin: string): Promise<Uint8Array> {
  const { file, shape } = mnistFiles[part];
  const response = await fetch(`${origin}${mnistAssetPath}/${file}`);
  if (!response.ok) throw new Error(`The bench's server answered ${response.status} to ${file}.`);
  return parseIdx(new Uint8Array(await response.arrayBuffer()), shape, file).data;
}

/** Each token is one of four that may follow the one before: something to learn. */
function makeTokens(count: number, length: number, vocabulary: number): Batch[] {
  const random = seededRandom(2);
  let token = 0;
  const next = () => {
    token = (token * 5 + Math.floor(random() * 4) + 1) % vocabulary;
    return token;
  };
  return Array.from({ length: count }, () => {
    const text = Int32Array.from({ length: length + 1 }, next);
    return { inputs: text.slice(0, length), labels: text.slice(1) };
  });
}

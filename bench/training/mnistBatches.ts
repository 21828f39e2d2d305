import { parseIdx } from "../../src/data/idx";
import { mnistFiles } from "../../src/data/mnistFiles";

/** Where the bench's server has MNIST's IDX files, below its origin. */
export const mnistAssetPath = "/bench-mnist";

/** Pixels between 0 and 1, row-major [batch, 28, 28], which is NCHW and NHWC alike; labels 0 to 9. */
export interface Batch {
  readonly size: number;
  readonly images: Float32Array<ArrayBuffer>;
  readonly labels: Int32Array<ArrayBuffer>;
}

const pixels = 28 * 28;

/** The first `count` batches of MNIST's training set, in its own order. */
export async function loadBatches(count: number, size: number): Promise<Batch[]> {
  const images = await fetchIdx("trainImages");
  const labels = await fetchIdx("trainLabels");
  if (count * size > labels.length) throw new RangeError(`MNIST has no ${count} batches of ${size} digits.`);
  return Array.from({ length: count }, (_, index) => {
    const first = index * size;
    return {
      size,
      images: Float32Array.from(images.subarray(first * pixels, (first + size) * pixels), (value) => value / 255),
      labels: Int32Array.from(labels.subarray(first, first + size)),
    };
  });
}

async function fetchIdx(part: "trainImages" | "trainLabels"): Promise<Uint8Array> {
  const { file, shape } = mnistFiles[part];
  const response = await fetch(`${mnistAssetPath}/${file}`);
  if (!response.ok) throw new Error(`The bench's server answered ${response.status} to ${file}.`);
  return parseIdx(new Uint8Array(await response.arrayBuffer()), shape, file).data;
}

import { requestDevice } from "../../src/gpu";
import * as torch from "../../src/tensor";
import { finished } from "../finished";
import { liveDeviceBytes } from "../training/countDevice";

/** Bytes that training through causal attention of one head of 32 features holds, all buffers on the device counted. */
export interface AttentionMemory {
  readonly length: number;
  readonly bytes: number;
  /** Queries, keys and values, the result, and a gradient of each: what can't be done without. */
  readonly leastBytes: number;
  readonly milliseconds: number;
}

const width = 32;

/** Each on a device of its own, so that no other length's buffers are counted. */
export async function measureAttentionMemory(length: number): Promise<AttentionMemory> {
  const before = liveDeviceBytes();
  const device = await requestDevice();
  torch.setDefaultDevice(device);
  const shape = [1, 1, length, width];
  const leaves = [0, 1, 2].map((seed) => {
    const values = Float32Array.from({ length: length * width }, (_, i) => Math.sin(i * (seed + 1)));
    const leaf = torch.tensor(values, { shape });
    leaf.requiresGrad = true;
    return leaf;
  });
  const [q, k, v] = leaves;
  let milliseconds = 0;
  for (let step = 0; step < 2; step += 1) {
    const start = performance.now();
    for (const leaf of leaves) leaf.grad = null;
    const loss = torch.sum(torch.scaledDotProductAttention(q!, k!, v!, { isCausal: true }));
    loss.backward();
    await loss.item();
    await finished(device.gpu);
    milliseconds = performance.now() - start;
  }
  return { length, bytes: liveDeviceBytes() - before, leastBytes: 8 * 4 * length * width, milliseconds };
}

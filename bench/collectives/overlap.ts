// Steps over simulated links of 1 MB/s, in virtual time, with the memory that they really take. Loaded through Vite, for the shaders' sake.
import { heldBytes } from "../../src/distributed/simulation/heldBytes";
import { simulateOverlap } from "../../src/distributed/simulation/overlap";
import type { OverlapResult } from "./results";

const sampleMilliseconds = 130;

export async function measureOverlap(quick: boolean): Promise<OverlapResult[]> {
  const results: OverlapResult[] = [];
  for (const peers of quick ? [2] : [2, 3, 4])
    for (const modelBytes of quick ? [2 ** 21] : [2 ** 21, 2 ** 23]) {
      const options = { peers, modelBytes, layers: 32, bytesPerSecond: 1e6, latencyMilliseconds: 5 };
      const { clock, buckets, step } = simulateOverlap(options);
      const communicationMilliseconds = await step(() => 0);
      await clock.advance(1000);
      const samples = [heldBytes()];
      let isOver = false;
      const sample = () => {
        samples.push(heldBytes());
        if (!isOver) clock.setTimeout(sample, sampleMilliseconds);
      };
      clock.setTimeout(sample, sampleMilliseconds);
      const stepMilliseconds = await step(() => communicationMilliseconds);
      isOver = true;
      await clock.advance(sampleMilliseconds);
      results.push({
        peers,
        modelBytes,
        computeMilliseconds: communicationMilliseconds,
        communicationMilliseconds,
        stepMilliseconds,
        extraBytes: (Math.max(...samples) - Math.min(...samples)) / peers,
        largestBucketBytes: Math.max(...buckets[0]!.map(({ gradients }) => gradients.byteLength)),
      });
    }
  return results;
}

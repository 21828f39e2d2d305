import { VirtualClock } from "../../base/virtualClock";
import type { ParameterLayout } from "../../tensor";
import { memberId } from "../../transport/memberId";
import { SimulatedHub } from "../../transport/simulated";
import { type Bucket, BucketReducer, defaultCapMb } from "../bucketReducer";
import { ProcessGroup } from "../processGroup";

export interface OverlapOptions {
  readonly peers: number;
  readonly bytesPerSecond: number;
  /** One way. */
  readonly latencyMilliseconds: number;
  /** Of gradients, in layers of equal size. */
  readonly modelBytes: number;
  readonly layers: number;
}

/** Steps of ranks that compute, which takes virtual time alone, and reduce what they computed over a simulated network. */
export interface OverlapSimulation {
  readonly clock: VirtualClock;
  /** By rank. */
  readonly buckets: readonly (readonly Bucket[])[];
  /**
   * A step in which each rank computes for so long, every gradient at its time.
   * @returns the step's milliseconds, until the last rank has all of the mean.
   */
  step(computeMilliseconds: (rank: number) => number): Promise<number>;
}

export function simulateOverlap(options: OverlapOptions): OverlapSimulation {
  const { peers, bytesPerSecond, latencyMilliseconds, modelBytes, layers } = options;
  const clock = new VirtualClock();
  const hub = new SimulatedHub({ clock, bytesPerSecond, latency: [latencyMilliseconds, latencyMilliseconds] });
  const members = Array.from({ length: peers }, (_, rank) => memberId((rank + 1).toString(16).padStart(32, "0")));
  const networks = members.map((member) => hub.join(member));
  for (const [index, a] of members.entries()) for (const b of members.slice(index + 1)) hub.connect(a, b);
  const layout = layoutOf(layers, Math.floor(modelBytes / Float32Array.BYTES_PER_ELEMENT / layers));
  const reducers = networks.map(
    (network) => new BucketReducer(new ProcessGroup({ network, members, clock }), layout, defaultCapMb(layout)),
  );
  const runRank = async (reducer: BucketReducer, rank: number, computeMilliseconds: number): Promise<void> => {
    const ready = reducer.buckets.map(
      ({ to, gradients }) =>
        new Promise<void>((resolve) => {
          const computed = () => {
            gradients.fill(rank + 1);
            resolve();
          };
          clock.setTimeout(computed, (computeMilliseconds * to) / layout.length);
        }),
    );
    await reducer.reduce(ready, 1 / peers);
  };
  return {
    clock,
    buckets: reducers.map(({ buckets }) => buckets),
    step: async (computeMilliseconds) => {
      const began = clock.now();
      let isOver = false;
      const all = Promise.all(reducers.map((reducer, rank) => runRank(reducer, rank, computeMilliseconds(rank))));
      const mark = () => {
        isOver = true;
      };
      all.then(mark, mark);
      await clock.runUntil(() => isOver);
      await all;
      return clock.now() - began;
    },
  };
}

/** Layers of equal size. */
export function layoutOf(layers: number, length: number): ParameterLayout {
  const entries = Array.from({ length: layers }, (_, index) => ({
    name: `layer ${index}`,
    shape: [length],
    offset: index * length,
    length,
  }));
  return { entries, length: layers * length };
}

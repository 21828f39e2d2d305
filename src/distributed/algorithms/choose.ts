import type { Schedule } from "../schedule";
import type { Boundaries, Place } from "./boundaries";
import { directAllGather, directReduceScatter } from "./direct";
import { recursiveDoubling } from "./doubling";
import { ringAllGather, ringAllReduce, ringBroadcast, ringReduce, ringReduceScatter } from "./ring";
import { treeBroadcast, treeReduce } from "./tree";

/**
 * Which algorithm serves which size. Every member computes the choice from what is equal on all of them, and its name is part of the operation's
 * identity, so that members which choose differently find out.
 *
 * A hop costs the latency and the bytes' time on the wire. Few hops win where latency is the larger part, few bytes where it is the smaller; what
 * a link carries in the time of one latency tells the two apart. (docs/collectives.md has the measurements.)
 */
const bytesPerLatency = 4 * 1024;

/** The sizes at which two ways cost the same, given each one's hops, and how often a member sends the whole on average. */
function crossover(few: { hops: number; wholes: number }, many: { hops: number; wholes: number }): number {
  if (few.hops >= many.hops) return 0;
  const extraWholes = few.wholes - many.wholes;
  return extraWholes <= 0 ? Number.POSITIVE_INFINITY : (bytesPerLatency * (many.hops - few.hops)) / extraWholes;
}

/** Beyond this recursive doubling combines on one core what a ring spreads over all members. */
const smallLimitBytes = 64 * 1024;

function isSmall(
  bytes: number,
  few: { hops: number; wholes: number },
  many: { hops: number; wholes: number },
): boolean {
  return bytes <= Math.min(smallLimitBytes, crossover(few, many));
}

const depthOf = (worldSize: number) => Math.ceil(Math.log2(worldSize));

/** An all-reduce in place, for a member's place and a length in elements. */
export type AllReduceAlgorithm = (place: Place, length: number) => Schedule;

/** @param bytes of the whole, as it travels while it is being combined. */
export function chooseAllReduce({ worldSize }: Place, bytes: number): AllReduceAlgorithm {
  const size = 2 ** Math.floor(Math.log2(worldSize));
  const rounds = Math.log2(size);
  const extra = worldSize - size;
  // Members beyond the power of two send theirs once, and get the result once.
  const doubling = { hops: rounds + (extra > 0 ? 2 : 0), wholes: (size * rounds + 2 * extra) / worldSize };
  const ring = { hops: 2 * (worldSize - 1), wholes: (2 * (worldSize - 1)) / worldSize };
  return isSmall(bytes, doubling, ring) ? recursiveDoubling : ringAllReduce;
}

/** A tree sends the whole once for each child of the root; chunks in a ring go through all members at once. */
const isTreeBetter = (worldSize: number, bytes: number) =>
  isSmall(bytes, { hops: depthOf(worldSize), wholes: depthOf(worldSize) }, { hops: worldSize - 1, wholes: 1 });

export function chooseBroadcast({ worldSize }: Place, bytes: number): typeof ringBroadcast {
  return isTreeBetter(worldSize, bytes) ? treeBroadcast : ringBroadcast;
}

export function chooseReduce({ worldSize }: Place, bytes: number): typeof ringReduce {
  return isTreeBetter(worldSize, bytes) ? treeReduce : ringReduce;
}

/** Direct ways send the same bytes as a ring does in fewer hops, but to everyone at once: fine while it fits the links' buffers. */
export function chooseAllGather(bytes: number): (place: Place, start: Boundaries) => Schedule {
  return bytes <= smallLimitBytes ? directAllGather : ringAllGather;
}

export function chooseReduceScatter(bytes: number): (place: Place, start: Boundaries) => Schedule {
  return bytes <= smallLimitBytes ? directReduceScatter : ringReduceScatter;
}

/** Where segment `s` of a whole begins, for s from 0 to the world size; segment `s` ends where the next begins. */
export type Boundaries = (segment: number) => number;

/** As equal as can be: segment `s` begins at floor(s length / worldSize). */
export function evenBoundaries(length: number, worldSize: number): Boundaries {
  return (segment) => Math.floor((segment * length) / worldSize);
}

/** Segments of given lengths, one after another. */
export function boundariesOf(lengths: readonly number[]): Boundaries {
  const starts = [0];
  for (const length of lengths) starts.push(starts.at(-1)! + length);
  return (segment) => starts[segment]!;
}

/** A member's place. */
export interface Place {
  readonly rank: number;
  readonly worldSize: number;
}

/** A rank some way round the ring; negative ways too. */
export function rankAt({ rank, worldSize }: Place, way: number): number {
  return (((rank + way) % worldSize) + worldSize) % worldSize;
}

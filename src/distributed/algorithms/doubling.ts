import { type Incoming, type Outgoing, type Round, type Schedule, signalTo } from "../schedule";
import { type Place, rankAt } from "./boundaries";

/**
 * All-reduce by recursive doubling (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005):
 * log2(N) rounds, in each of which pairs of members exchange all they have. Where N isn't a power of two, the members beyond it give their
 * values to a partner first, and get the result from it at last.
 *
 * Partners combine the same two values in different order, which is the same for every operation in the table except for the bits of a NaN;
 * those are made equal at the end.
 */
export function recursiveDoubling({ rank, worldSize }: Place, length: number): Schedule {
  const size = 2 ** Math.floor(Math.log2(worldSize));
  const extra = rank + size < worldSize ? rank + size : null;
  const whole = { offset: 0, length };
  const give = (to: number): Outgoing => ({ ...whole, to, format: "partial", source: "input", at: 0 });
  const take = (kind: "hold" | "reduce", forward: readonly number[]): Incoming => ({
    ...whole,
    action: kind === "hold" ? { kind, at: 0 } : { kind, at: 0, to: 0 },
    forward,
  });
  return {
    algorithm: "recursive doubling",
    isReplicated: true,
    *rounds(): Iterable<Round> {
      if (worldSize === 1) return;
      if (rank >= size) {
        const partner = rank - size;
        const result: Incoming = { ...whole, action: { kind: "store", at: 0 }, forward: [] };
        yield { sends: [give(partner)], lanes: new Map([[partner, [result]]]) };
        return;
      }
      if (extra !== null) yield { sends: [], lanes: new Map([[extra, [take("hold", [rank ^ 1])]]]) };
      for (let bit = 1; bit < size; bit *= 2) {
        const next = bit * 2 < size ? rank ^ (bit * 2) : null;
        const last = extra === null ? [] : [extra];
        yield {
          sends: bit === 1 && extra === null ? [give(rank ^ 1)] : [],
          lanes: new Map([[rank ^ bit, [next === null ? take("reduce", last) : take("hold", [next])]]]),
        };
      }
    },
  };
}

/**
 * Nobody passes before everyone has come (Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988): in round k every
 * member hears from the one 2^k to its left that all up to there have come.
 */
export function dissemination(place: Place): Schedule {
  return {
    algorithm: "dissemination",
    isReplicated: false,
    *rounds(): Iterable<Round> {
      for (let way = 1; way < place.worldSize; way *= 2)
        yield {
          sends: [signalTo(rankAt(place, way))],
          lanes: new Map([[rankAt(place, -way), [{ offset: 0, length: 0, action: { kind: "pass" }, forward: [] }]]]),
        };
    },
  };
}

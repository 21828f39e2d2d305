import { type Incoming, noTransfers, type Outgoing, type Round, type Schedule } from "../schedule";
import { type Boundaries, evenBoundaries, type Place, rankAt } from "./boundaries";

/** A schedule of one round, in which everything comes from the left neighbour. */
function fromLeft(
  place: Place,
  algorithm: string,
  sends: () => Iterable<Outgoing>,
  incoming: () => Iterable<Incoming>,
): Schedule {
  return {
    algorithm,
    isReplicated: false,
    rounds(): Iterable<Round> {
      if (place.worldSize === 1) return [];
      const lanes = new Map([[rankAt(place, -1), { [Symbol.iterator]: () => incoming()[Symbol.iterator]() }]]);
      return [{ sends: { [Symbol.iterator]: () => sends()[Symbol.iterator]() }, lanes }];
    },
  };
}

/**
 * Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009): every member sends 2 (N - 1) / N of the whole,
 * in 2 (N - 1) hops.
 *
 * Segment `s` sets out from rank `s` and makes 2 (N - 1) hops to the right, in chunks. On the first N - 1 hops every member combines its own
 * values into it (reduce-scatter), so that rank `s - 1` ends with the result; on the others everyone stores that (all-gather). A chunk goes on as
 * soon as it is handled. Each element is combined once, by members in ring order, and travels as bytes, so all end with the same bits.
 */
export function ringAllReduce(place: Place, length: number): Schedule {
  const { rank, worldSize } = place;
  const start = evenBoundaries(length, worldSize);
  const right = [rankAt(place, 1)];
  const lastHop = 2 * (worldSize - 1);
  return fromLeft(
    place,
    "ring",
    function* () {
      const at = start(rank);
      if (start(rank + 1) > at)
        yield { to: right[0]!, offset: at, length: start(rank + 1) - at, format: "partial", source: "input", at };
    },
    function* () {
      for (let hop = 1; hop <= lastHop; hop += 1) {
        const segment = rankAt(place, -hop);
        const at = start(segment);
        const count = start(segment + 1) - at;
        if (count === 0) continue;
        const action =
          hop < worldSize - 1
            ? ({ kind: "combine", at } as const)
            : hop === worldSize - 1
              ? ({ kind: "reduce", at, to: at } as const)
              : ({ kind: "store", at } as const);
        yield { offset: at, length: count, action, forward: hop < lastHop ? right : [] };
      }
    },
  );
}

/**
 * The first half of a ring all-reduce: rank `s` ends with segment `s` of the result, at the beginning of its output, having sent
 * (N - 1) / N of the whole.
 */
export function ringReduceScatter(place: Place, start: Boundaries): Schedule {
  const right = [rankAt(place, 1)];
  return fromLeft(
    place,
    "ring",
    function* () {
      const segment = rankAt(place, -1);
      const at = start(segment);
      yield { to: right[0]!, offset: at, length: start(segment + 1) - at, format: "partial", source: "input", at };
    },
    function* () {
      for (let hop = 1; hop < place.worldSize; hop += 1) {
        const segment = rankAt(place, -1 - hop);
        const at = start(segment);
        const isMine = segment === place.rank;
        yield {
          offset: at,
          length: start(segment + 1) - at,
          action: isMine ? { kind: "reduce", at, to: 0 } : { kind: "combine", at },
          forward: isMine ? [] : right,
        };
      }
    },
  );
}

/** Every member's segment, which lies in its output already, goes all the way round: (N - 1) / N of the whole are sent by each. */
export function ringAllGather(place: Place, start: Boundaries): Schedule {
  const right = [rankAt(place, 1)];
  return fromLeft(
    place,
    "ring",
    function* () {
      const at = start(place.rank);
      yield { to: right[0]!, offset: at, length: start(place.rank + 1) - at, format: "final", source: "output", at };
    },
    function* () {
      for (let hop = 1; hop < place.worldSize; hop += 1) {
        const segment = rankAt(place, -hop);
        const at = start(segment);
        yield {
          offset: at,
          length: start(segment + 1) - at,
          action: { kind: "store", at },
          forward: hop < place.worldSize - 1 ? right : [],
        };
      }
    },
  );
}

/** The root's values go round the ring in chunks, each passed on as soon as it has come. */
export function ringBroadcast(place: Place, root: number, length: number): Schedule {
  const right = rankAt(place, 1);
  const whole = { offset: 0, length };
  if (place.rank === root)
    return {
      algorithm: "ring",
      isReplicated: false,
      *rounds() {
        if (place.worldSize > 1)
          yield {
            sends: [{ ...whole, to: right, format: "final", source: "input", at: 0 }],
            lanes: noTransfers,
          };
      },
    };
  return fromLeft(
    place,
    "ring",
    () => [],
    () => [{ ...whole, action: { kind: "store", at: 0 }, forward: right === root ? [] : [right] }],
  );
}

/** Values are combined from the root's right neighbour all the way round to the root, in chunks. */
export function ringReduce(place: Place, root: number, length: number): Schedule {
  const right = rankAt(place, 1);
  const whole = { offset: 0, length };
  if (rankAt(place, -1) === root && place.rank !== root)
    return {
      algorithm: "ring",
      isReplicated: false,
      *rounds() {
        yield { sends: [{ ...whole, to: right, format: "partial", source: "input", at: 0 }], lanes: noTransfers };
      },
    };
  return fromLeft(
    place,
    "ring",
    () => [],
    () => [
      place.rank === root
        ? { ...whole, action: { kind: "reduce", at: 0, to: 0 }, forward: [] }
        : { ...whole, action: { kind: "combine", at: 0 }, forward: [right] },
    ],
  );
}

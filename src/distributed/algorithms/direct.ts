import { type Incoming, noTransfers, type Outgoing, type Round, type Schedule } from "../schedule";
import { type Boundaries, type Place, rankAt } from "./boundaries";

/** Everybody sends straight to whom it concerns: one hop, and the same bytes as any other way where every rank gets something different. */
const direct = (rounds: () => Iterable<Round>): Schedule => ({ algorithm: "direct", isReplicated: false, rounds });

/** The others, from the right neighbour on, so that they aren't all served in the same order by everyone. */
function others(place: Place): number[] {
  return Array.from({ length: place.worldSize - 1 }, (_, index) => rankAt(place, index + 1));
}

const store = (length: number, at: number): Incoming => ({
  offset: 0,
  length,
  action: { kind: "store", at },
  forward: [],
});

/** Segment `s` of the root's output comes from rank `s`. */
export function gatherTo(place: Place, root: number, start: Boundaries): Schedule {
  const length = (rank: number) => start(rank + 1) - start(rank);
  return direct(function* () {
    if (place.rank === root)
      yield {
        sends: [],
        lanes: new Map(others(place).map((rank) => [rank, [store(length(rank), start(rank))]])),
      };
    else
      yield {
        sends: [{ to: root, offset: 0, length: length(place.rank), format: "final", source: "input", at: 0 }],
        lanes: noTransfers,
      };
  });
}

/** Segment `s` of the root's input goes to rank `s`. */
export function scatterFrom(place: Place, root: number, start: Boundaries): Schedule {
  const length = (rank: number) => start(rank + 1) - start(rank);
  return direct(function* () {
    if (place.rank === root)
      yield {
        sends: others(place).map((to) => ({
          to,
          offset: 0,
          length: length(to),
          format: "final",
          source: "input",
          at: start(to),
        })),
        lanes: noTransfers,
      };
    else yield { sends: [], lanes: new Map([[root, [store(length(place.rank), 0)]]]) };
  });
}

/** Segment `s` of the input goes to rank `s`; segment `s` of the output comes from rank `s`. */
export function allToAllDirect(place: Place, inputStart: Boundaries, outputStart: Boundaries): Schedule {
  return direct(function* () {
    if (place.worldSize === 1) return;
    yield {
      sends: others(place).map(
        (to): Outgoing => ({
          to,
          offset: 0,
          length: inputStart(to + 1) - inputStart(to),
          format: "final",
          source: "input",
          at: inputStart(to),
        }),
      ),
      lanes: new Map(
        others(place).map((from) => [from, [store(outputStart(from + 1) - outputStart(from), outputStart(from))]]),
      ),
    };
  });
}

/** Everyone sends its segment, which lies in its output already, to everyone. */
export function directAllGather(place: Place, start: Boundaries): Schedule {
  const length = (rank: number) => start(rank + 1) - start(rank);
  return direct(function* () {
    if (place.worldSize === 1) return;
    const own = start(place.rank);
    yield {
      sends: others(place).map(
        (to): Outgoing => ({ to, offset: 0, length: length(place.rank), format: "final", source: "output", at: own }),
      ),
      lanes: new Map(others(place).map((rank) => [rank, [store(length(rank), start(rank))]])),
    };
  });
}

/** Segment `s` of everyone's input goes to rank `s`, which combines them in the order of the ranks. */
export function directReduceScatter(place: Place, start: Boundaries): Schedule {
  const at = start(place.rank);
  const length = start(place.rank + 1) - at;
  return direct(function* () {
    const from = others(place).toSorted((a, b) => a - b);
    for (const [index, rank] of from.entries())
      yield {
        sends:
          index > 0
            ? []
            : others(place).map(
                (to): Outgoing => ({
                  to,
                  offset: 0,
                  length: start(to + 1) - start(to),
                  format: "partial",
                  source: "input",
                  at: start(to),
                }),
              ),
        lanes: new Map<number, Incoming[]>([
          [
            rank,
            [
              {
                offset: 0,
                length,
                action: index === from.length - 1 ? { kind: "reduce", at, to: 0 } : { kind: "hold", at },
                forward: [],
              },
            ],
          ],
        ]),
      };
  });
}

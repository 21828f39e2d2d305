import { noTransfers, type Round, type Schedule } from "../schedule";
import { type Place, rankAt } from "./boundaries";

/** A member's place in the binomial tree under a root: log2(N) deep, with the children of the deepest branches first. */
function branches(
  place: Place,
  root: number,
): { readonly parent: number | null; readonly children: readonly number[] } {
  const own = rankAt(place, -root);
  const toRank = (virtual: number) => rankAt({ rank: virtual, worldSize: place.worldSize }, root);
  const children: number[] = [];
  let bit = 1;
  for (; own % (bit * 2) === 0 && bit < place.worldSize; bit *= 2)
    if (own + bit < place.worldSize) children.unshift(toRank(own + bit));
  return { parent: own === 0 ? null : toRank(own - bit), children };
}

/** The root's values go down a binomial tree. */
export function treeBroadcast(place: Place, root: number, length: number): Schedule {
  const { parent, children } = branches(place, root);
  const whole = { offset: 0, length };
  return {
    algorithm: "tree",
    isReplicated: false,
    *rounds(): Iterable<Round> {
      if (parent === null)
        yield {
          sends: children.map((to) => ({ ...whole, to, format: "final", source: "input", at: 0 })),
          lanes: noTransfers,
        };
      else
        yield {
          sends: [],
          lanes: new Map([[parent, [{ ...whole, action: { kind: "store", at: 0 }, forward: children }]]]),
        };
    },
  };
}

/** Values are combined up a binomial tree, a child at a time, so that the order is always the same. */
export function treeReduce(place: Place, root: number, length: number): Schedule {
  const { parent, children } = branches(place, root);
  const whole = { offset: 0, length };
  return {
    algorithm: "tree",
    isReplicated: false,
    *rounds(): Iterable<Round> {
      if (children.length === 0 && parent !== null)
        yield { sends: [{ ...whole, to: parent, format: "partial", source: "input", at: 0 }], lanes: noTransfers };
      // The child with the smallest branch is ready first.
      const order = children.toReversed();
      for (const [index, child] of order.entries()) {
        const isLast = index === order.length - 1;
        const up = isLast && parent !== null ? [parent] : [];
        yield {
          sends: [],
          lanes: new Map([
            [
              child,
              [
                {
                  ...whole,
                  action: isLast && parent === null ? { kind: "reduce", at: 0, to: 0 } : { kind: "hold", at: 0 },
                  forward: up,
                },
              ],
            ],
          ]),
        };
      }
    },
  };
}

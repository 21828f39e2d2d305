import { VirtualClock } from "../../base/virtualClock";
import { InProcessHub } from "../../transport/inProcess";
import type { MemberId } from "../../transport/link";
import { memberId } from "../../transport/memberId";
import { ProcessGroup } from "../processGroup";
import type { Work } from "../work";

export const idOf = (rank: number): MemberId => memberId((7 * rank + 3).toString(16).padStart(32, "c"));

export interface Ranks {
  readonly clock: VirtualClock;
  readonly hub: InProcessHub;
  readonly groups: readonly ProcessGroup[];
  /** Runs virtual time until a promise settles. */
  settle<T>(promise: Promise<T>): Promise<T>;
  /** Runs virtual time until all works settle, and gives each one's failure, or null. */
  outcomes(works: readonly Work[]): Promise<(string | null)[]>;
}

/** The ranks of a world in one program, in virtual time, fully linked; delays follow from the seed. */
export function makeRanks(worldSize: number, seed = worldSize, timeoutMilliseconds = 10_000): Ranks {
  const clock = new VirtualClock();
  const hub = new InProcessHub({ clock, seed, latency: [1, 15] });
  const members = Array.from({ length: worldSize }, (_, rank) => idOf(rank));
  const networks = members.map((member) => hub.join(member));
  for (const [index, a] of members.entries()) for (const b of members.slice(index + 1)) hub.connect(a, b);
  const groups = networks.map((network) => new ProcessGroup({ network, members, timeoutMilliseconds, clock }));
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    let over = false;
    const mark = () => {
      over = true;
    };
    promise.then(mark, mark);
    if (!(await clock.runUntil(() => over))) throw new Error("Virtual time ended before the promise settled.");
    return promise;
  };
  return {
    clock,
    hub,
    groups,
    settle,
    outcomes: async (works) => {
      await settle(Promise.allSettled(works.map((work) => work.wait())));
      return works.map((work) => work.exception?.message ?? null);
    },
  };
}

import { InProcessHub } from "../../transport/inProcess";
import { ProcessGroup } from "../processGroup";
import { idOf } from "./ranks";

/** The ranks of a world in one page, in real time, fully linked. */
export function makeTabRanks(worldSize: number, timeoutMilliseconds = 20_000): ProcessGroup[] {
  const hub = new InProcessHub();
  const members = Array.from({ length: worldSize }, (_, rank) => idOf(rank));
  const networks = members.map((member) => hub.join(member));
  for (const [index, a] of members.entries()) for (const b of members.slice(index + 1)) hub.connect(a, b);
  return networks.map((network) => new ProcessGroup({ network, members, timeoutMilliseconds }));
}

/** Runs the same on every rank, at the same time. */
export const onAll = <T>(groups: readonly ProcessGroup[], body: (group: ProcessGroup) => Promise<T>): Promise<T[]> =>
  Promise.all(groups.map(body));

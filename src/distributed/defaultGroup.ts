import { type Clock, realClock } from "../base/clock";
import { aloneNetwork } from "./aloneNetwork";
import { backendNamed } from "./backends";
import { env } from "./environment";
import { formWorld, type Meeting } from "./formWorld";
import { ProcessGroup } from "./processGroup";

export interface InitOptions {
  /** By default what `env` says, as for all others. */
  readonly rank?: number;
  readonly worldSize?: number;
  /** The Ringlet server at which the ranks find each other. */
  readonly host?: string;
  readonly port?: number;
  readonly job?: string;
  /** 16 bytes, base64url. */
  readonly secret?: string;
  /** How long to wait for the other ranks, and how long a collective may go without progress. */
  readonly timeoutMilliseconds?: number;
  /** "webrtc", or the name of a backend that was registered. */
  readonly backend?: string;
  /** A way to meet at hand, such as an in-process hub, instead of a backend's. */
  readonly meeting?: Meeting;
  readonly clock?: Clock;
}

/** Meets the other ranks and links to each of them. @throws CollectiveError naming the ranks that didn't come in time. */
export async function createProcessGroup(options: InitOptions = {}): Promise<ProcessGroup> {
  const rank = options.rank ?? env.RANK;
  const worldSize = options.worldSize ?? env.WORLD_SIZE;
  const { clock = realClock, timeoutMilliseconds = env.RINGLET_TIMEOUT * 1000 } = options;
  if (
    !Number.isInteger(worldSize) ||
    worldSize < 1 ||
    worldSize > 255 ||
    !Number.isInteger(rank) ||
    rank < 0 ||
    rank >= worldSize
  )
    throw new RangeError(`There is no rank ${rank} in a world of ${worldSize}; worlds have 1 to 255 ranks.`);
  if (worldSize === 1) {
    const network = aloneNetwork();
    return new ProcessGroup({ network, members: [network.self], timeoutMilliseconds, clock });
  }
  const meeting =
    options.meeting ??
    (await backendNamed(options.backend ?? env.RINGLET_BACKEND)({
      rank,
      worldSize,
      host: options.host ?? env.MASTER_ADDR,
      port: options.port ?? env.MASTER_PORT,
      job: options.job ?? env.RINGLET_JOB,
      secret: options.secret ?? env.RINGLET_SECRET,
      timeoutMilliseconds,
    }));
  try {
    const members = await formWorld({ meeting, rank, worldSize, timeoutMilliseconds, clock });
    return new ProcessGroup({ network: meeting.network, members, timeoutMilliseconds, clock });
  } catch (error) {
    meeting.network.close(`Rank ${rank} couldn't join the process group.`);
    throw error;
  }
}

let current: ProcessGroup | null = null;

/** Makes the group that the functions below use. Every rank calls it. */
export async function initProcessGroup(options: InitOptions = {}): Promise<ProcessGroup> {
  if (current !== null) throw new Error("The process group is there already: destroyProcessGroup() ends it.");
  current = await createProcessGroup(options);
  return current;
}

/** Leaves a group; without one, the whole world. */
export function destroyProcessGroup(group: ProcessGroup | null = current): void {
  group?.destroy();
  if (group === current) current = null;
}

export function isInitialized(): boolean {
  return current !== null;
}

/** @throws Error before initProcessGroup has resolved. */
export function getProcessGroup(): ProcessGroup {
  if (current === null) throw new Error("There is no process group yet: await initProcessGroup() first.");
  return current;
}

import { type Clock, realClock } from "../base/clock";
import { aloneNetwork } from "./aloneNetwork";
import { meetInBrowser } from "./browserMeeting";
import { env } from "./environment";
import { formWorld, type Meeting } from "./formWorld";
import { ProcessGroup } from "./processGroup";
import type { ReduceOp } from "./reduceOp";
import type { Values } from "./values";
import type { Work } from "./work";

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
  /** Other ways to meet than WebRTC, such as an in-process hub. */
  readonly meeting?: Meeting;
  readonly clock?: Clock;
}

/** Meets the other ranks and links to each of them. @throws CollectiveError naming the ranks that didn't come in time. */
export async function createProcessGroup(options: InitOptions = {}): Promise<ProcessGroup> {
  const rank = options.rank ?? env.RANK;
  const worldSize = options.worldSize ?? env.WORLD_SIZE;
  const { timeoutMilliseconds = 60_000, clock = realClock } = options;
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
    (await meetInBrowser({
      host: options.host ?? env.MASTER_ADDR,
      port: options.port ?? env.MASTER_PORT,
      job: options.job ?? env.RINGLET_JOB,
      secret: options.secret ?? env.RINGLET_SECRET,
      worldSize,
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

export function destroyProcessGroup(): void {
  current?.destroy();
  current = null;
}

export function isInitialized(): boolean {
  return current !== null;
}

/** @throws Error before initProcessGroup has resolved. */
export function getProcessGroup(): ProcessGroup {
  if (current === null) throw new Error("There is no process group yet: await initProcessGroup() first.");
  return current;
}

export const getRank = (): number => getProcessGroup().rank;
export const getWorldSize = (): number => getProcessGroup().worldSize;
export const allReduce = (values: Values, op: ReduceOp = "sum"): Work => getProcessGroup().allReduce(values, op);
export const broadcast = (values: Values, source: number): Work => getProcessGroup().broadcast(values, source);
export const barrier = (): Work => getProcessGroup().barrier();
export const send = (values: Values, destination: number, tag = 0): Work =>
  getProcessGroup().send(values, destination, tag);
export const recv = (values: Values, source: number, tag = 0): Work => getProcessGroup().recv(values, source, tag);

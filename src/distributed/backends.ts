import { meetInBrowser } from "./browserMeeting";
import type { Meeting } from "./formWorld";

/** What a backend needs to bring ranks together. */
export interface RendezvousOptions {
  readonly rank: number;
  readonly worldSize: number;
  /** MASTER_ADDR and MASTER_PORT, for backends that meet at a server. */
  readonly host: string;
  readonly port: number;
  /** Names the world; ranks with the same name and secret meet. */
  readonly job: string;
  readonly secret: string;
  readonly timeoutMilliseconds: number;
}

/** Makes this rank's way to meet the others: a network, and how rank 0 is found on it. */
export type Backend = (options: RendezvousOptions) => Promise<Meeting>;

const backends = new Map<string, Backend>([["webrtc", meetInBrowser]]);

/**
 * Adds a transport of one's own, as torch.distributed.Backend.register_backend; `initProcessGroup({ backend: name })` uses it then.
 * @throws RangeError when the name is taken.
 */
export function registerBackend(name: string, backend: Backend): void {
  if (backends.has(name)) throw new RangeError(`There is a backend "${name}" already.`);
  backends.set(name, backend);
}

export function backendNamed(name: string): Backend {
  const backend = backends.get(name);
  if (backend === undefined)
    throw new RangeError(`There is no backend "${name}"; there are: ${[...backends.keys()].join(", ")}.`);
  return backend;
}

import { ServerError } from "./errors";

/** As `RTCPeerConnection` takes them. */
export interface IceServer {
  readonly urls: string | readonly string[];
  readonly username?: string;
  readonly credential?: string;
}

const example = `'[{"urls": "turn:turn.example.org", "username": "me", "credential": "secret"}]'`;

/**
 * Reads `RINGLET_ICE_SERVERS`: a JSON array as `RTCPeerConnection`'s `iceServers`.
 *
 * @throws ServerError saying which entry is wrong.
 */
export function parseIceServers(text: string): IceServer[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ServerError(`RINGLET_ICE_SERVERS is not JSON; it looks like ${example}.`);
  }
  if (!Array.isArray(value)) throw new ServerError(`RINGLET_ICE_SERVERS is not an array; it looks like ${example}.`);
  return value.map((entry: unknown, index) => parseIceServer(entry, index + 1));
}

function parseIceServer(entry: unknown, position: number): IceServer {
  const refuse = (why: string) => new ServerError(`Entry ${position} of RINGLET_ICE_SERVERS ${why}.`);
  if (typeof entry !== "object" || entry === null) throw refuse("is not an object");
  const { urls, username, credential } = { urls: undefined, username: undefined, credential: undefined, ...entry };
  const list: readonly unknown[] = Array.isArray(urls) ? urls : [urls];
  const addresses = list.filter((url): url is string => typeof url === "string" && /^(stuns?|turns?):[^/]/.test(url));
  if (list.length === 0 || addresses.length < list.length)
    throw refuse(`needs "urls" that begin with stun:, stuns:, turn: or turns:, and has ${JSON.stringify(urls)}`);
  if (!isOptionalText(username) || !isOptionalText(credential))
    throw refuse(`has a "username" or "credential" that is not text`);
  if (addresses.some((url) => url.startsWith("turn")) && (username === undefined || credential === undefined))
    throw refuse(`is a TURN server, which needs a "username" and a "credential"`);
  return {
    urls: addresses,
    ...(username === undefined ? {} : { username }),
    ...(credential === undefined ? {} : { credential }),
  };
}

const isOptionalText = (value: unknown): value is string | undefined =>
  value === undefined || typeof value === "string";

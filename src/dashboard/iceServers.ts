const example = '[{"urls": "stun:stun.example.org:3478"}]';

const isUrl = (value: unknown): value is string =>
  typeof value === "string" && /^(stun|stuns|turn|turns):./.test(value);
const isUrls = (value: unknown): value is string | string[] =>
  isUrl(value) || (Array.isArray(value) && value.length > 0 && value.every(isUrl));

/**
 * Reads ICE servers in the format of RINGLET_ICE_SERVERS: a JSON array of RTCIceServer. Empty text is no servers.
 * @throws Error with a sentence for the person who wrote it
 */
export function parseIceServers(text: string): RTCIceServer[] {
  if (text.trim() === "") return [];
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error(`ICE servers must be JSON, such as ${example}.`);
  }
  if (!Array.isArray(json)) throw new Error(`ICE servers must be a list in brackets, such as ${example}.`);
  return json.map((entry: unknown, at) => parseServer(entry, at + 1));
}

function parseServer(entry: unknown, place: number): RTCIceServer {
  if (typeof entry !== "object" || entry === null || !("urls" in entry) || !isUrls(entry.urls))
    throw new Error(`ICE server ${place} needs "urls" that begin with stun: or turn:, such as in ${example}.`);
  const server: RTCIceServer = { urls: entry.urls };
  for (const key of ["username", "credential"] as const) {
    const value: unknown = key in entry ? Reflect.get(entry, key) : undefined;
    if (value === undefined) continue;
    if (typeof value !== "string") throw new Error(`ICE server ${place}'s ${key} must be text.`);
    server[key] = value;
  }
  return server;
}

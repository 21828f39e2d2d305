/** What the page's server says about itself in `/ringlet.json`, as far as a tab needs it. */
export interface ServerInfo {
  /** PeerServer's path at the page's own origin. */
  readonly signalingPath: string;
  readonly iceServers: readonly RTCIceServer[];
  /** The origin by which other machines reach the page; null when the server serves this machine only. */
  readonly shareOrigin: string | null;
}

/** A plain file server has no `/ringlet.json`: then its pages can be used alone, and nobody can be invited. */
const withoutServer: ServerInfo = { signalingPath: "/signal", iceServers: [], shareOrigin: null };

const isIceServer = (value: unknown): value is RTCIceServer =>
  typeof value === "object" && value !== null && "urls" in value;

/** @throws Error with a sentence when the answer isn't the server's. */
export function parseServerInfo(json: unknown): ServerInfo {
  if (typeof json !== "object" || json === null || !("signalingPath" in json) || typeof json.signalingPath !== "string")
    throw new Error("The server's /ringlet.json isn't what this page expects; reload the page.");
  const iceServers: unknown = "iceServers" in json ? json.iceServers : [];
  const origin: unknown = "shareOrigin" in json ? json.shareOrigin : null;
  return {
    signalingPath: json.signalingPath,
    iceServers: Array.isArray(iceServers) ? iceServers.filter(isIceServer) : [],
    shareOrigin: typeof origin === "string" && URL.canParse(origin) ? new URL(origin).origin : null,
  };
}

export async function fetchServerInfo(): Promise<ServerInfo> {
  const response = await fetch("/ringlet.json");
  return response.ok ? parseServerInfo(await response.json()) : withoutServer;
}

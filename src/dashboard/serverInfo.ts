/** What the server says about itself in /ringlet.json, as far as the page needs it. */
export interface ServerInfo {
  /** The origin by which other machines reach the page; null when the server serves this machine only. */
  readonly shareOrigin: string | null;
}

/** @throws Error with a sentence when the answer isn't the server's */
export function parseServerInfo(json: unknown): ServerInfo {
  if (typeof json !== "object" || json === null)
    throw new Error("The server's /ringlet.json isn't what this page expects; reload the page.");
  const origin: unknown = "shareOrigin" in json ? json.shareOrigin : null;
  return { shareOrigin: typeof origin === "string" && URL.canParse(origin) ? new URL(origin).origin : null };
}

/** A page that a plain file server hands out has no /ringlet.json: then there is nothing to know. */
export async function fetchServerInfo(): Promise<ServerInfo> {
  const response = await fetch("/ringlet.json");
  if (!response.ok) return { shareOrigin: null };
  return parseServerInfo(await response.json());
}

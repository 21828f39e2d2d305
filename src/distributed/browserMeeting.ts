import { fromBase64Url } from "../base/bytes";
import { BrowserConnector } from "../transport/browserConnector";
import { createIdentity } from "../transport/identity";
import { WebRtcNetwork } from "../transport/webRtcNetwork";
import type { Meeting } from "./formWorld";

export interface BrowserMeetingOptions {
  readonly host: string;
  readonly port: number;
  readonly job: string;
  /** 16 bytes, base64url. */
  readonly secret: string;
  readonly worldSize: number;
}

/** What the ranks' server says of itself at /ringlet.json. */
interface ServerFacts {
  readonly signalingPath: string;
  readonly iceServers: readonly RTCIceServer[];
}

function isServerFacts(value: unknown): value is ServerFacts {
  return (
    typeof value === "object" &&
    value !== null &&
    "signalingPath" in value &&
    typeof value.signalingPath === "string" &&
    "iceServers" in value &&
    Array.isArray(value.iceServers)
  );
}

/** Ranks in tabs meet at a Ringlet server, over WebRTC. */
export async function meetInBrowser({ host, port, job, secret, worldSize }: BrowserMeetingOptions): Promise<Meeting> {
  const secure = location.protocol === "https:";
  const address = `${secure ? "https" : "http"}://${host}:${port}/ringlet.json`;
  const response = await fetch(address);
  const facts: unknown = response.ok ? await response.json() : null;
  if (!isServerFacts(facts))
    throw new Error(`${address} isn't a Ringlet server's: start one with "npx ringlet serve".`);
  const connector = new BrowserConnector({
    signaling: { host, port, path: facts.signalingPath, secure },
    iceServers: facts.iceServers,
    forWorker: false,
  });
  // The world's size is part of what ranks prove to each other, so that worlds of different sizes don't mix.
  const manifest = new TextEncoder().encode(`ringlet process group ${job} of ${worldSize}`);
  const network = await WebRtcNetwork.create({
    connector,
    identity: await createIdentity(),
    secret: fromBase64Url(secret),
    job,
    manifestHash: new Uint8Array(await crypto.subtle.digest("SHA-256", manifest)),
  });
  return { network, claim: () => network.claim(), contact: () => network.contact() };
}

import { fromHex } from "../base/bytes";

/**
 * The SHA-256 fingerprint of the DTLS certificate in a session description.
 * @throws Error when there is none, or several that differ: then it isn't certain which certificate is used.
 */
export function fingerprintOf(sdp: string): Uint8Array<ArrayBuffer> {
  const found = new Set<string>();
  for (const [, algorithm, value] of sdp.matchAll(/^a=fingerprint:(\S+) ([0-9a-fA-F:]+)\s*$/gm))
    found.add(algorithm?.toLowerCase() === "sha-256" ? (value ?? "").replaceAll(":", "").toLowerCase() : "another");
  const [fingerprint] = found;
  if (found.size !== 1 || fingerprint === undefined || fingerprint.length !== 64)
    throw new Error(
      `A session description must have one SHA-256 fingerprint; this one has ${found.size} fingerprints.`,
    );
  return fromHex(fingerprint);
}

import { fromHex, toHex } from "../base/bytes";
import { type Manifest, maxElements, parseJobSpec } from "./spec";

/**
 * Reads a manifest from JSON that came from outside.
 * @throws Error with a sentence for the first value that can't be.
 */
export function parseManifest(json: unknown): Manifest {
  if (typeof json !== "object" || json === null) throw new Error("A job's manifest must be an object.");
  const given: Record<string, unknown> = { ...json };
  const { protocol, job, maker, spec, elements, ...others } = given;
  if (protocol !== 1)
    throw new Error(`This job speaks protocol ${JSON.stringify(protocol)}, and this page speaks 1: reload the page.`);
  if (typeof job !== "string" || !/^[\w-]{1,64}$/.test(job))
    throw new Error("A manifest's job must be 1 to 64 letters, digits, - or _.");
  if (typeof maker !== "string" || maker.length > 64)
    throw new Error("A manifest's maker must be a name of at most 64 characters.");
  if (typeof elements !== "number" || !Number.isInteger(elements) || elements < 1 || elements > maxElements)
    throw new Error(`A manifest's elements must be a whole number from 1 to ${maxElements}.`);
  if (Object.keys(others).length > 0) throw new Error(`A manifest has no ${Object.keys(others).join(", ")}.`);
  return { protocol, job, maker, spec: parseJobSpec(spec), elements };
}

/** SHA-256 of the manifest's canonical JSON: what peers prove to each other. */
export async function manifestHash(manifest: Manifest, hash = sha256): Promise<Uint8Array<ArrayBuffer>> {
  return fromHex(await hash(new TextEncoder().encode(canonicalJson(manifest))));
}

/** JSON without white space, the keys of each object in order, so that equal values are equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`)
      .join(",")}}`;
  return JSON.stringify(value);
}

/** SHA-256 in lower-case hex. The bytes are copied before this returns: they may change afterwards. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

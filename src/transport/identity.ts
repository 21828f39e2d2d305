import { concatBytes, toHex } from "../base/bytes";
import type { MemberId } from "./link";
import { memberId, memberIdBytes } from "./memberId";

/** A public key on the wire: an uncompressed point of P-256 (SEC 1, section 2.3.3). */
export const publicKeyBytes = 65;
/** A signature on the wire: r and s of ECDSA on P-256. */
export const signatureBytes = 64;

const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256" } as const;
const signatureAlgorithm = { name: "ECDSA", hash: "SHA-256" } as const;

/** A member's key pair, and the id that follows from it. */
export interface Identity {
  readonly member: MemberId;
  readonly publicKey: Uint8Array<ArrayBuffer>;
  sign(message: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
}

/** A new key pair. The private key can't be exported; the pair can be stored in IndexedDB. */
export async function createKeyPair(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(keyAlgorithm, false, ["sign", "verify"]);
}

export async function identityOf(keyPair: CryptoKeyPair): Promise<Identity> {
  const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", keyPair.publicKey));
  return {
    member: await memberOf(publicKey),
    publicKey,
    sign: async (message) => new Uint8Array(await crypto.subtle.sign(signatureAlgorithm, keyPair.privateKey, message)),
  };
}

export async function createIdentity(): Promise<Identity> {
  return identityOf(await createKeyPair());
}

/** The id of the member with this public key. */
export async function memberOf(publicKey: Uint8Array<ArrayBuffer>): Promise<MemberId> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", publicKey));
  return memberId(toHex(hash.subarray(0, memberIdBytes)));
}

/** False also when the key isn't a point of the curve. */
export async function verifySignature(
  publicKey: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  message: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  let key: CryptoKey;
  try {
    key = await crypto.subtle.importKey("raw", publicKey, keyAlgorithm, false, ["verify"]);
  } catch {
    return false;
  }
  return crypto.subtle.verify(signatureAlgorithm, key, signature, message);
}

/** The keys with which the two ends of a connection prove that they know the job's secret. */
export interface ProofKeys {
  readonly dialer: CryptoKey;
  readonly acceptor: CryptoKey;
}

/** Bytes of a job's secret. */
export const secretBytes = 16;

/**
 * HKDF-SHA-256 of the secret, salted with the job's id, to one HMAC key for each direction.
 * @throws RangeError when the secret isn't 16 bytes long.
 */
export async function deriveProofKeys(secret: Uint8Array<ArrayBuffer>, job: string): Promise<ProofKeys> {
  if (secret.length !== secretBytes)
    throw new RangeError(
      `A job's secret has ${secretBytes} bytes, this one has ${secret.length}: the link is incomplete.`,
    );
  const material = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
  const text = new TextEncoder();
  const derive = (role: string) =>
    crypto.subtle.deriveKey(
      {
        name: "HKDF",
        hash: "SHA-256",
        salt: text.encode(`ringlet job ${job}`),
        info: text.encode(`proof of the ${role}`),
      },
      material,
      { name: "HMAC", hash: "SHA-256", length: 256 },
      false,
      ["sign", "verify"],
    );
  return { dialer: await derive("dialer"), acceptor: await derive("acceptor") };
}

/** The rendezvous ids under which a job's members can be found; the server learns nothing else of the job. */
export async function rendezvousNames(job: string, count: number): Promise<readonly string[]> {
  const prefix = new TextEncoder().encode("ringlet rendezvous ");
  const hash = await crypto.subtle.digest("SHA-256", concatBytes(prefix, new TextEncoder().encode(job)));
  const base = toHex(new Uint8Array(hash).subarray(0, 16));
  return Array.from({ length: count }, (_, index) => `${base}-${index}`);
}

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { generate } from "selfsigned";
import { addressBytes, hostNames, networkAddresses } from "./addresses";
import { writeWhole } from "./cacheFolder";

/** Private key and certificate, one after the other in PEM. */
export type Certificate = string;

const day = 24 * 60 * 60 * 1000;
/** Browsers refuse longer ones of public authorities, and treat ours no better. */
const lifetime = 397 * day;
const renewBefore = 7 * day;

/** Every name and address under which a browser may reach this machine. */
export const certificateNames = (): string[] => [
  "localhost",
  "127.0.0.1",
  "::1",
  ...hostNames(),
  ...networkAddresses(),
];

/**
 * The certificate for HTTPS, from the cache folder where an earlier start left it. It is made anew when there is none,
 * when it lacks one of `names`, is about to expire or is damaged; otherwise it stays, so that people who have accepted
 * it aren't asked again.
 */
export async function obtainCertificate(
  cacheFolder: string,
  names: readonly string[] = certificateNames(),
  now = Date.now(),
): Promise<Certificate> {
  const path = join(cacheFolder, "certificate.pem");
  const kept = await readFile(path, "utf8").catch(() => null);
  if (kept !== null && isUsable(kept, names, now)) return kept;
  const made = await make(names, now);
  await writeWhole(path, made, 0o600);
  return made;
}

function isUsable(pem: Certificate, names: readonly string[], now: number): boolean {
  try {
    const certificate = new X509Certificate(pem);
    return (
      certificate.checkPrivateKey(createPrivateKey(pem)) &&
      Date.parse(certificate.validFrom) <= now &&
      Date.parse(certificate.validTo) - renewBefore > now &&
      names.every((name) => covers(certificate, name))
    );
  } catch {
    return false;
  }
}

/** Whether the certificate holds for this host name or address. */
const covers = (certificate: X509Certificate, name: string) =>
  (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;

async function make(names: readonly string[], now: number): Promise<Certificate> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "Ringlet on this network" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    // Clocks of phones and laptops differ by minutes.
    notBeforeDate: new Date(now - day),
    notAfterDate: new Date(now - day + lifetime),
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [...new Set(names)].map((name) =>
          addressBytes(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
        ),
      },
    ],
  });
  return `${key.trim()}\n${cert.trim()}\n`;
}

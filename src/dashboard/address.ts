import type { JobAddress } from "../worker/api";

/** What the address bar asks for. */
export type PageAddress =
  | { readonly kind: "start" }
  | { readonly kind: "job"; readonly address: JobAddress }
  /** A link that can't lead to a job; `problem` says why, as a sentence. */
  | { readonly kind: "broken"; readonly problem: string };

const jobPattern = /^[A-Za-z0-9_-]{1,64}$/;
/** 128 bits in base64url. */
const secretPattern = /^[A-Za-z0-9_-]{22}$/;

/** Reads `?job=ID#SECRET`. */
export function parseAddress(location: { readonly search: string; readonly hash: string }): PageAddress {
  const job = new URLSearchParams(location.search).get("job");
  if (job === null) return { kind: "start" };
  if (!jobPattern.test(job))
    return { kind: "broken", problem: "This link doesn't name a job: it seems to be damaged." };
  const secret = location.hash.replace(/^#/, "");
  if (secret === "")
    return { kind: "broken", problem: "This link lacks its secret, the part after #, so nobody can let you in." };
  if (!secretPattern.test(secret))
    return { kind: "broken", problem: "The secret in this link, the part after #, is cut off or damaged." };
  return { kind: "job", address: { job, secret } };
}

/** The part of a link after the page's path. */
export const addressSuffix = (address: JobAddress): string =>
  `?job=${encodeURIComponent(address.job)}#${address.secret}`;

/** Names by which a machine calls only itself. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" ||
  hostname.endsWith(".localhost") ||
  hostname === "[::1]" ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname);

/**
 * The link to hand to others: the page's own address, except that a page opened as localhost uses the origin that the
 * server names for other machines, if any.
 */
export function inviteLink(
  address: JobAddress,
  page: { readonly origin: string; readonly hostname: string; readonly pathname: string },
  shareOrigin: string | null,
): string {
  const origin = isLoopback(page.hostname) && shareOrigin !== null ? shareOrigin : page.origin;
  return `${origin}${page.pathname}${addressSuffix(address)}`;
}

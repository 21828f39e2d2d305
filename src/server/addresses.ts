import { isIPv4, isIPv6 } from "node:net";
import { hostname, type NetworkInterfaceInfo, networkInterfaces } from "node:os";

export type Interfaces = Readonly<
  Record<string, readonly Pick<NetworkInterfaceInfo, "address" | "internal">[] | undefined>
>;

/** Interfaces of containers and virtual machines: real, but seldom where the other machine is. */
const virtual = /^(docker|br-|veth|virbr|vboxnet|vmnet|cni|flannel|lxc|lxd|utun|tailscale|zt|wg|tun|tap)/;

/**
 * The addresses at which other machines may find this one, likeliest first: IPv4 before IPv6, real networks before
 * virtual ones. Link-local IPv6 is left out, since it works in a browser's address bar nowhere.
 */
export function networkAddresses(interfaces: Interfaces = networkInterfaces()): string[] {
  const found = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? [])
      .filter(({ address, internal }) => !internal && !isLinkLocal(address))
      .map(({ address }) => ({ address, rank: (isIPv4(address) ? 0 : 1) + (virtual.test(name) ? 2 : 0) })),
  );
  return [...new Set(found.sort((a, b) => a.rank - b.rank).map(({ address }) => address))];
}

const isLinkLocal = (address: string) => /^(fe[89ab][0-9a-f]:|169\.254\.)/i.test(address);

/** The names by which other machines may know this one; with `.local` for multicast DNS. */
export function hostNames(name = hostname()): string[] {
  if (name === "" || isIPv4(name) || isIPv6(name) || name === "localhost") return [];
  return name.includes(".") ? [name] : [name, `${name}.local`];
}

/** A host as it stands in a URL: IPv6 in brackets. */
export const urlHost = (host: string) => (isIPv6(host) ? `[${host}]` : host);

/** The bytes of an address: 4 for IPv4 and for IPv4 mapped into IPv6, 16 for IPv6; null for anything else. */
export function addressBytes(address: string): Uint8Array | null {
  if (isIPv4(address)) return Uint8Array.from(address.split("."), Number);
  const plain = address.split("%")[0] ?? "";
  if (!isIPv6(plain)) return null;
  // What remains of `::ffff:192.0.2.1` is two groups written as four decimal bytes.
  const groups = plain.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const pair = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16);
    return `${pair(a, b)}:${pair(c, d)}`;
  });
  const [head = "", tail] = groups.split("::");
  const parse = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const left = parse(head);
  const right = parse(tail ?? "");
  const words = [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
  const bytes = Uint8Array.from(words.flatMap((word) => [word >> 8, word & 0xff]));
  const isMapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff;
  return isMapped ? bytes.subarray(12) : bytes;
}

import type { Network } from "../transport/link";
import { memberId, memberIdBytes } from "../transport/memberId";

/** The network of a world of one. */
export function aloneNetwork(): Network {
  return {
    self: memberId("00".repeat(memberIdBytes)),
    links: new Map(),
    onLink: null,
    onRefused: null,
    dial: () => Promise.reject(new Error("There is nobody else in a world of one.")),
    close: () => {},
  };
}

import type { MemberId } from "./link";

/** Bytes of a member's id. */
export const memberIdBytes = 16;

export function isMemberId(text: string): text is MemberId {
  return /^[0-9a-f]{32}$/.test(text);
}

/** @throws RangeError when `text` isn't 32 lower-case hexadecimal digits. */
export function memberId(text: string): MemberId {
  if (!isMemberId(text)) throw new RangeError(`A member's id is 32 lower-case hexadecimal digits, got "${text}".`);
  return text;
}

/** What stands for a member in sentences. */
export function shortId(member: MemberId): string {
  return member.slice(0, 8);
}

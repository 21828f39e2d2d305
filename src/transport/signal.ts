import { fromHex, toHex } from "../base/bytes";
import type { MemberId } from "./link";
import { memberId, memberIdBytes } from "./memberId";

const kinds = ["offer", "answer", "refusal"] as const;
const headBytes = 2 * memberIdBytes + 1 + 4;

/** What travels in a signal frame, from one member to another through a third: 16 bytes to, 16 from, kind, attempt (little-endian), UTF-8 text. */
export interface Signal {
  readonly to: MemberId;
  readonly from: MemberId;
  readonly kind: (typeof kinds)[number];
  /** The dialler's number for this attempt. */
  readonly attempt: number;
  /** A session description, or for a refusal a sentence. */
  readonly text: string;
}

export function encodeSignal({ to, from, kind, attempt, text }: Signal): Uint8Array<ArrayBuffer> {
  const body = new TextEncoder().encode(text);
  const bytes = new Uint8Array(headBytes + body.length);
  bytes.set(fromHex(to), 0);
  bytes.set(fromHex(from), memberIdBytes);
  bytes[2 * memberIdBytes] = kinds.indexOf(kind);
  new DataView(bytes.buffer).setUint32(2 * memberIdBytes + 1, attempt, true);
  bytes.set(body, headBytes);
  return bytes;
}

/** @returns the signal, or a sentence saying why it is none. */
export function decodeSignal(bytes: Uint8Array<ArrayBuffer>): Signal | string {
  if (bytes.length < headBytes) return `A signal has ${bytes.length} bytes; its head alone has ${headBytes}.`;
  const kind = kinds[bytes[2 * memberIdBytes]!];
  if (kind === undefined) return `A signal is of kind ${bytes[2 * memberIdBytes]}, which there isn't.`;
  const id = (at: number) => memberId(toHex(bytes.subarray(at, at + memberIdBytes)));
  return {
    to: id(0),
    from: id(memberIdBytes),
    kind,
    attempt: new DataView(bytes.buffer, bytes.byteOffset).getUint32(2 * memberIdBytes + 1, true),
    text: new TextDecoder().decode(bytes.subarray(headBytes)),
  };
}

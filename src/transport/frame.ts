import type { Frame, FrameHeader, FrameKind } from "./link";

/**
 * A frame on the wire, little-endian:
 *
 *     byte  0      1     2-3    4-7    8-11  12-15    16-19   20-23           24-
 *           version kind zeros  epoch  step  channel  offset  payload length  payload
 */
export const headerBytes = 24;
export const frameVersion = 1;

/** What a link sends besides the frames of its users: the last frame says why it closes. */
export type WireKind = FrameKind | "goodbye";

export interface WireFrame extends Omit<Frame, "kind"> {
  readonly kind: WireKind;
}
export interface WireHeader extends Omit<FrameHeader, "kind"> {
  readonly kind: WireKind;
}

const kindToByte: Readonly<Record<WireKind, number>> = {
  heartbeat: 1,
  signal: 2,
  control: 3,
  chunk: 4,
  state: 5,
  goodbye: 6,
};
const byteToKind: readonly (WireKind | undefined)[] = [
  undefined,
  "heartbeat",
  "signal",
  "control",
  "chunk",
  "state",
  "goodbye",
];

const fields = ["epoch", "step", "channel", "offset"] as const;

/**
 * Writes header and payload to the start of `into`.
 * @returns the frame's bytes: a view of `into`.
 * @throws RangeError when a field isn't an unsigned 32-bit integer, or the frame doesn't fit.
 */
export function encodeFrame(
  header: WireHeader,
  payload: Uint8Array<ArrayBufferLike>,
  into: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> {
  const length = headerBytes + payload.length;
  if (length > into.length)
    throw new RangeError(`A frame of ${length} bytes doesn't fit into ${into.length} (kind ${header.kind}).`);
  const view = new DataView(into.buffer, into.byteOffset, headerBytes);
  view.setUint8(0, frameVersion);
  view.setUint8(1, kindToByte[header.kind]);
  view.setUint16(2, 0);
  for (const [index, field] of fields.entries()) {
    const value = header[field];
    if (!(Number.isInteger(value) && value >= 0 && value <= 0xffffffff))
      throw new RangeError(`A frame's ${field} must be an integer from 0 to 4294967295, got ${value}.`);
    view.setUint32(4 + 4 * index, value, true);
  }
  view.setUint32(20, payload.length, true);
  into.set(payload, headerBytes);
  return into.subarray(0, length);
}

/** @returns the frame, its payload a view of `message`, or a sentence saying why it is none. */
export function decodeFrame(message: ArrayBuffer): WireFrame | string {
  if (message.byteLength < headerBytes)
    return `A message of ${message.byteLength} bytes is no frame: a header alone has ${headerBytes}.`;
  const view = new DataView(message);
  const version = view.getUint8(0);
  if (version !== frameVersion) return `A frame has version ${version}; this side speaks version ${frameVersion}.`;
  const kind = byteToKind[view.getUint8(1)];
  if (kind === undefined) return `A frame is of kind ${view.getUint8(1)}, which there isn't.`;
  if (view.getUint16(2) !== 0) return "A frame's bytes 2 and 3 must be zero.";
  const length = view.getUint32(20, true);
  if (length !== message.byteLength - headerBytes)
    return `A frame says that its payload has ${length} bytes, but ${message.byteLength - headerBytes} came.`;
  return {
    kind,
    epoch: view.getUint32(4, true),
    step: view.getUint32(8, true),
    channel: view.getUint32(12, true),
    offset: view.getUint32(16, true),
    payload: new Uint8Array(message, headerBytes),
  };
}

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { addressBytes } from "./addresses";
import { type Bound, bindEach, bindSocket } from "./listen";

/**
 * Answers STUN (RFC 5389): tells a browser the address and port at which its packets arrive here. Browsers hide their
 * local addresses behind multicast names; on networks that don't carry multicast this is how tabs still find each
 * other. Binds the same port at each of `hosts`.
 */
export function startStun(hosts: readonly string[], port: number): Promise<Bound> {
  return bindEach(hosts, port, "--stun-port", async (place) => {
    const isIPv6 = place.host.includes(":");
    const socket = createSocket({ type: isIPv6 ? "udp6" : "udp4", ipv6Only: isIPv6 });
    if (!(await bindSocket(socket, place))) return null;
    answerOn(socket);
    return { port: socket.address().port, close: () => new Promise<void>((done) => socket.close(() => done())) };
  });
}

function answerOn(socket: Socket) {
  socket.on("message", (request: Buffer, sender: RemoteInfo) => {
    const answer = answerStun(request, sender);
    // An answer that can't be sent is an answer lost: UDP's clients ask again.
    if (answer) socket.send(answer, sender.port, sender.address, () => {});
  });
  // What ICMP reports of earlier answers ("port unreachable") comes as an error and concerns nobody.
  socket.on("error", () => {});
}

const headerBytes = 20;
const magicCookie = 0x2112a442;
const bindingRequest = 0x0001;
const bindingSuccess = 0x0101;
const bindingError = 0x0111;
const errorCodeAttribute = 0x0009;
const unknownAttributes = 0x000a;
const xorMappedAddress = 0x0020;
/** Attributes below this must be understood by whoever answers. */
const firstOptionalAttribute = 0x8000;
/** USERNAME and MESSAGE-INTEGRITY need no check, since everybody is answered; the rest belong to answers. */
const understood = new Set([
  0x0001,
  0x0006,
  0x0008,
  errorCodeAttribute,
  unknownAttributes,
  0x0014,
  0x0015,
  xorMappedAddress,
]);

/** The answer to one datagram; null for anything that is not a well-formed Binding request. */
export function answerStun(
  request: Uint8Array,
  sender: { readonly address: string; readonly port: number },
): Uint8Array | null {
  if (request.byteLength < headerBytes) return null;
  const view = new DataView(request.buffer, request.byteOffset, request.byteLength);
  if (view.getUint16(0) !== bindingRequest || view.getUint32(4) !== magicCookie) return null;
  if (view.getUint16(2) !== request.byteLength - headerBytes || request.byteLength % 4 !== 0) return null;

  const unknown: number[] = [];
  for (let offset = headerBytes; offset < request.byteLength; ) {
    const type = view.getUint16(offset);
    const padded = (view.getUint16(offset + 2) + 3) & ~3;
    if (offset + 4 + padded > request.byteLength) return null;
    if (type < firstOptionalAttribute && !understood.has(type)) unknown.push(type);
    offset += 4 + padded;
  }
  const transaction = request.subarray(8, headerBytes);
  if (unknown.length > 0) return unknownAttributeError(transaction, unknown);

  const address = addressBytes(sender.address);
  return address && success(transaction, address, sender.port);
}

function message(type: number, transaction: Uint8Array, attributeBytes: number) {
  const bytes = new Uint8Array(headerBytes + attributeBytes);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, type);
  view.setUint16(2, attributeBytes);
  view.setUint32(4, magicCookie);
  bytes.set(transaction, 8);
  return { bytes, view };
}

/** Section 15.2: port and address are XORed with magic cookie and transaction, so that no router rewrites them. */
function success(transaction: Uint8Array, address: Uint8Array, port: number): Uint8Array {
  const { bytes, view } = message(bindingSuccess, transaction, 8 + address.byteLength);
  view.setUint16(20, xorMappedAddress);
  view.setUint16(22, 4 + address.byteLength);
  view.setUint8(25, address.byteLength === 4 ? 0x01 : 0x02);
  view.setUint16(26, port ^ (magicCookie >>> 16));
  // Magic cookie and transaction stand next to each other in the header, in the order in which they are used here.
  for (let i = 0; i < address.byteLength; i++) view.setUint8(28 + i, view.getUint8(4 + i) ^ address[i]!);
  return bytes;
}

/** Sections 7.3.1, 15.6 and 15.9: error 420 with the attributes that aren't understood. */
function unknownAttributeError(transaction: Uint8Array, unknown: readonly number[]): Uint8Array {
  // No more of them than make the answer as long as a successful one: nobody gains by forging the sender.
  const named = unknown.slice(0, 4);
  const listBytes = (2 * named.length + 3) & ~3;
  const { bytes, view } = message(bindingError, transaction, 8 + 4 + listBytes);
  view.setUint16(20, errorCodeAttribute);
  view.setUint16(22, 4);
  view.setUint8(26, 4);
  view.setUint8(27, 20);
  view.setUint16(28, unknownAttributes);
  view.setUint16(30, 2 * named.length);
  for (const [index, type] of named.entries()) view.setUint16(32 + 2 * index, type);
  return bytes;
}

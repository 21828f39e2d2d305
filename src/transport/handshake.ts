import { concatBytes, equalBytes, toHex } from "../base/bytes";
import { type Identity, memberOf, type ProofKeys, publicKeyBytes, signatureBytes, verifySignature } from "./identity";
import type { MemberId } from "./link";
import { shortId } from "./memberId";

/*
 * Both ends of a new connection prove that they know the job's secret and hold their key pair's private half.
 *
 * Each sends a hello (its nonce, public key, manifest hash and the DTLS fingerprints it sees), then, once it has the other's, a proof:
 * an HMAC with its direction's key, and a signature, both over the transcript. The transcript has both nonces, public keys and member ids,
 * the fingerprints as the verifying side sees them, the protocol version and the manifest hash. So a proof is good for this DTLS
 * connection and this direction alone: it can't be echoed, replayed, or relayed by somebody in the middle. Last, each sends
 * its verdict, so that both know that both are satisfied. All messages have fixed sizes, and nothing else is read before.
 */

export const protocolVersion = 1;
export const hashBytes = 32;
const nonceBytes = 32;
const macBytes = 32;

const magic = Uint8Array.of(0x52, 0x4e, 0x47, 0x4c);
const helloType = 1;
const proofType = 2;
const verdictType = 3;
/** type, magic, version, role */
const helloFixedBytes = 8;
const helloBytes = helloFixedBytes + nonceBytes + publicKeyBytes + 3 * hashBytes;
const proofBytes = 1 + macBytes + signatureBytes;
const verdictBytes = 2;

/** Why a connection is refused; the order is that of the codes on the wire. */
const refusalCodes = ["malformed", "version", "echo", "fingerprint", "manifest", "identity", "secret", "late"] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** The side that dialled sends as "dialer". */
export type Role = "dialer" | "acceptor";
const roleToByte: Readonly<Record<Role, number>> = { dialer: 1, acceptor: 2 };

/** SHA-256 fingerprints of the two DTLS certificates, as this side's descriptions have them. */
export interface Fingerprints {
  readonly local: Uint8Array<ArrayBuffer>;
  readonly remote: Uint8Array<ArrayBuffer>;
}

export interface HandshakeOptions {
  readonly role: Role;
  readonly identity: Identity;
  readonly keys: ProofKeys;
  readonly fingerprints: Fingerprints;
  /** SHA-256 of the job's manifest; null for a joiner that takes it from the peer, and checks the manifest against it later. */
  readonly manifestHash: Uint8Array<ArrayBuffer> | null;
  /** Whom this side dialled, where it knows that. */
  readonly expectedPeer: MemberId | null;
}

export interface ProvenPeer {
  readonly member: MemberId;
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly manifestHash: Uint8Array<ArrayBuffer>;
}

export type HandshakeStep =
  | { readonly kind: "more"; readonly send: readonly Uint8Array<ArrayBuffer>[] }
  | { readonly kind: "proven"; readonly peer: ProvenPeer }
  /** The connection must be closed once `send` is sent. */
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly sentence: string;
      readonly send: readonly Uint8Array<ArrayBuffer>[];
    };

type State =
  | { readonly kind: "hello" }
  | { readonly kind: "proof"; readonly peer: ProvenPeer; readonly transcript: Uint8Array<ArrayBuffer> }
  | { readonly kind: "verdict"; readonly peer: ProvenPeer }
  | { readonly kind: "over" };

/** One side of the proof: messages in, messages and at last a verdict out. The caller passes one message at a time. */
export class Handshake {
  readonly #options: HandshakeOptions;
  readonly #nonce = crypto.getRandomValues(new Uint8Array(nonceBytes));
  #state: State = { kind: "hello" };

  constructor(options: HandshakeOptions) {
    this.#options = options;
  }

  /** This side's first message. */
  hello(): Uint8Array<ArrayBuffer> {
    const { role, identity, fingerprints, manifestHash } = this.#options;
    return concatBytes(
      Uint8Array.of(helloType, ...magic, protocolVersion & 255, protocolVersion >> 8, roleToByte[role]),
      this.#nonce,
      identity.publicKey,
      manifestHash ?? new Uint8Array(hashBytes),
      fingerprints.local,
      fingerprints.remote,
    );
  }

  /** True when this side is satisfied, so that the peer may begin to send frames. */
  get satisfied(): boolean {
    return this.#state.kind === "verdict";
  }

  async receive(message: Uint8Array<ArrayBuffer>): Promise<HandshakeStep> {
    const state = this.#state;
    if (state.kind === "over") return this.#refuse("malformed", "A peer went on after the handshake had ended.");
    if (message[0] === verdictType && message.length === verdictBytes) return this.#takeVerdict(message[1]!);
    switch (state.kind) {
      case "hello":
        return this.#takeHello(message);
      case "proof":
        return this.#takeProof(message, state.peer, state.transcript);
      case "verdict":
        return this.#malformed(message, "a verdict", verdictBytes);
    }
  }

  /** Ends a handshake that takes too long. */
  expire(milliseconds: number): HandshakeStep {
    return this.#refuse("late", `A peer didn't finish its proof within ${milliseconds / 1000} s.`);
  }

  async #takeHello(message: Uint8Array<ArrayBuffer>): Promise<HandshakeStep> {
    const { role, identity, fingerprints, manifestHash, expectedPeer } = this.#options;
    if (message[0] !== helloType || message.length < helloFixedBytes || !equalBytes(message.subarray(1, 5), magic))
      return this.#malformed(message, "a hello", helloBytes);
    const version = message[5]! + 256 * message[6]!;
    if (version !== protocolVersion)
      return this.#refuse(
        "version",
        `A peer speaks version ${version} of the protocol, this side version ${protocolVersion}: reload the page that is older.`,
      );
    if (message.length !== helloBytes) return this.#malformed(message, "a hello", helloBytes);
    let at = helloFixedBytes;
    const take = (length: number) => {
      at += length;
      return message.slice(at - length, at);
    };
    const nonce = take(nonceBytes);
    const publicKey = take(publicKeyBytes);
    const announcedManifest = take(hashBytes);
    const seenByPeer = { local: take(hashBytes), remote: take(hashBytes) };

    if (message[7] === roleToByte[role] || equalBytes(nonce, this.#nonce) || equalBytes(publicKey, identity.publicKey))
      return this.#refuse("echo", "A peer sent this side's own messages back.");
    if (!equalBytes(seenByPeer.local, fingerprints.remote) || !equalBytes(seenByPeer.remote, fingerprints.local))
      return this.#refuse(
        "fingerprint",
        "The two ends see different DTLS certificates: somebody sits between them, or repeats an old hello.",
      );
    const peerKnows = announcedManifest.some((byte) => byte !== 0);
    if (manifestHash === null && !peerKnows)
      return this.#refuse(
        "manifest",
        "Neither this side nor the peer knows the job's manifest: nobody runs the job here.",
      );
    if (manifestHash !== null && peerKnows && !equalBytes(manifestHash, announcedManifest))
      return this.#refuse(
        "manifest",
        `A peer runs another job under the same address: its manifest's hash is ${brief(announcedManifest)}, this side's is ${brief(manifestHash)}.`,
      );
    const member = await memberOf(publicKey);
    if (expectedPeer !== null && member !== expectedPeer)
      return this.#refuse(
        "identity",
        `Member ${shortId(expectedPeer)} was dialled, but member ${shortId(member)} answered.`,
      );

    const manifest = manifestHash ?? announcedManifest;
    const self = concatBytes(this.#nonce, identity.publicKey, encode(identity.member), fingerprints.local);
    const peer = concatBytes(nonce, publicKey, encode(member), fingerprints.remote);
    const transcript = concatBytes(
      encode(`ringlet handshake ${protocolVersion}\n`),
      ...(role === "dialer" ? [self, peer] : [peer, self]),
      manifest,
    );
    this.#state = { kind: "proof", peer: { member, publicKey, manifestHash: manifest }, transcript };
    const spoken = spokenBy(role, transcript);
    const mac = await crypto.subtle.sign("HMAC", this.#options.keys[role], spoken);
    const proof = concatBytes(Uint8Array.of(proofType), new Uint8Array(mac), await identity.sign(spoken));
    return { kind: "more", send: [proof] };
  }

  async #takeProof(
    message: Uint8Array<ArrayBuffer>,
    peer: ProvenPeer,
    transcript: Uint8Array<ArrayBuffer>,
  ): Promise<HandshakeStep> {
    if (message[0] !== proofType || message.length !== proofBytes)
      return this.#malformed(message, "a proof", proofBytes);
    const otherRole: Role = this.#options.role === "dialer" ? "acceptor" : "dialer";
    const expected = spokenBy(otherRole, transcript);
    const mac = message.slice(1, 1 + macBytes);
    // subtle.verify compares in constant time.
    if (!(await crypto.subtle.verify("HMAC", this.#options.keys[otherRole], mac, expected)))
      return this.#refuse(
        "secret",
        `Member ${shortId(peer.member)} and this side don't have the same secret: one of the two links is wrong or incomplete, or an old proof was repeated.`,
      );
    if (!(await verifySignature(peer.publicKey, message.slice(1 + macBytes), expected)))
      return this.#refuse(
        "identity",
        `A peer claims to be member ${shortId(peer.member)}, but doesn't hold its private key.`,
      );
    this.#state = { kind: "verdict", peer };
    return { kind: "more", send: [Uint8Array.of(verdictType, 0)] };
  }

  #takeVerdict(byte: number): HandshakeStep {
    const state = this.#state;
    if (byte === 0 && state.kind === "verdict") {
      this.#state = { kind: "over" };
      return { kind: "proven", peer: state.peer };
    }
    const code = refusalCodes[byte - 1];
    if (code === undefined) return this.#refuse("malformed", "A peer accepted a proof that it didn't get.");
    this.#state = { kind: "over" };
    return { kind: "refused", code, sentence: refusedByPeer[code], send: [] };
  }

  #malformed(message: Uint8Array, what: string, bytes: number): HandshakeStep {
    return this.#refuse(
      "malformed",
      `A peer sent ${message.length} bytes that aren't ${what} of ${bytes} bytes: it doesn't speak Ringlet's protocol.`,
    );
  }

  #refuse(code: RefusalCode, sentence: string): HandshakeStep {
    this.#state = { kind: "over" };
    return { kind: "refused", code, sentence, send: [Uint8Array.of(verdictType, refusalCodes.indexOf(code) + 1)] };
  }
}

/** What the other side found, for those cases in which this side didn't find it first. */
const refusedByPeer: Readonly<Record<RefusalCode, string>> = {
  malformed: "The peer couldn't read this side's messages: the two pages differ in version; reload both.",
  version: "The peer speaks another version of the protocol: reload the page that is older.",
  echo: "The peer got its own messages back instead of this side's.",
  fingerprint: "The peer sees other DTLS certificates than this side: somebody sits between them.",
  manifest: "The peer runs another job under the same address.",
  identity: "The peer didn't get a proof of the identity it expected.",
  secret: "The peer has another secret than this side: one of the two links is wrong or incomplete.",
  late: "The peer waited too long for this side's proof.",
};

/** The transcript as one side proves it: the role in front keeps the two proofs apart. */
function spokenBy(role: Role, transcript: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return concatBytes(Uint8Array.of(roleToByte[role]), transcript);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function brief(hash: Uint8Array): string {
  return toHex(hash.subarray(0, 4));
}

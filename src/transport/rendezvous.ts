import type { DataConnection, Peer, PeerOptions } from "peerjs";
import type { ClaimResult } from "./connector";

/** Where PeerServer is. */
export interface SignalingServer {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
}

/** The signaling server at `path` of the page's own origin. */
export function signalingAt(path: string, location: Location): SignalingServer {
  const secure = location.protocol === "https:";
  return { host: location.hostname, port: Number(location.port) || (secure ? 443 : 80), path, secure };
}

export interface MeetingHandlers {
  /** Called in the task in which the connection was made. */
  dialled(name: string, connection: RTCPeerConnection): void;
  answered(name: string): void;
  absent(name: string): void;
}

const registrationMilliseconds = 8000;
/** How long to wait before a name is claimed again: after a loss at first, growing, and while all are taken. */
const retryMilliseconds = { first: 1000, longest: 8000, taken: 4000 };

/** A name that is to be kept; `peer` has it at the moment. */
interface Claim {
  peer: Peer | null;
}

type Registration = { readonly kind: "registered"; readonly peer: Peer } | Exclude<ClaimResult, { kind: "claimed" }>;

/**
 * Finds the first peer by name, over PeerJS. PeerJS's connections carry nothing but their set-up; Ringlet opens its own channel on them.
 * A Peer is never destroyed once it made a connection, since that would close the connection; it is disconnected.
 */
export class Rendezvous {
  readonly #server: SignalingServer;
  readonly #options: PeerOptions;
  #meeting: Peer | null = null;
  #claim: Claim | null = null;

  constructor(server: SignalingServer, config: RTCConfiguration) {
    this.#server = server;
    this.#options = { ...server, config, debug: 0 };
  }

  async meet(names: readonly string[], handlers: MeetingHandlers): Promise<void> {
    this.endMeeting();
    const registration = await this.#register(crypto.randomUUID());
    if (registration.kind !== "registered")
      throw new Error(
        registration.kind === "unreachable" ? registration.sentence : "Somebody has this tab's random name.",
      );
    const { peer } = registration;
    this.#meeting = peer;
    peer.on("error", (error) => {
      // The only place where PeerJS names the peer that isn't there.
      const name = names.find((candidate) => error.message.endsWith(candidate));
      if (error.type === "peer-unavailable" && name !== undefined) handlers.absent(name);
    });
    for (const name of names) {
      const connection = peer.connect(name, { serialization: "raw", reliable: true });
      const inner = connection.peerConnection;
      inner.addEventListener("signalingstatechange", () => {
        if (inner.signalingState === "stable" && inner.remoteDescription !== null) handlers.answered(name);
      });
      detachWhenOpen(peer, connection);
      handlers.dialled(name, inner);
    }
  }

  endMeeting(): void {
    this.#meeting?.disconnect();
    this.#meeting = null;
  }

  /** Only one claim stands at a time. */
  claim(names: readonly string[], onVisitor: (connection: RTCPeerConnection) => void): Promise<ClaimResult> {
    this.#endClaim();
    const claim: Claim = { peer: null };
    this.#claim = claim;
    return new Promise((resolve) => {
      this.#keepClaimed(claim, names, onVisitor, resolve);
    });
  }

  end(): void {
    this.endMeeting();
    this.#endClaim();
  }

  #endClaim(): void {
    this.#claim?.peer?.disconnect();
    this.#claim = null;
  }

  async #keepClaimed(
    claim: Claim,
    names: readonly string[],
    onVisitor: (connection: RTCPeerConnection) => void,
    first: (result: ClaimResult) => void,
  ): Promise<void> {
    let wait = retryMilliseconds.first;
    while (this.#claim === claim) {
      const registration = await this.#registerOneOf(names);
      if (registration.kind === "registered") {
        const { peer } = registration;
        if (this.#claim !== claim) peer.destroy();
        else {
          claim.peer = peer;
          wait = retryMilliseconds.first;
          peer.on("connection", (connection) => {
            detachWhenOpen(peer, connection);
            onVisitor(connection.peerConnection);
          });
          const lost = new Promise<void>((resolve) => {
            peer.on("disconnected", () => resolve());
          });
          first({ kind: "claimed", name: peer.id });
          await lost;
        }
      } else {
        first(registration);
        if (registration.kind === "taken") wait = retryMilliseconds.taken;
      }
      // Those that lost the same server don't come back at the same moment.
      await new Promise((resolve) => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
      wait = Math.min(2 * wait, retryMilliseconds.longest);
    }
    first({ kind: "unreachable", sentence: "The name was given up before it was claimed." });
  }

  async #registerOneOf(names: readonly string[]): Promise<Registration> {
    // Members that look for a free name at once begin at different ones.
    const start = Math.floor(Math.random() * names.length);
    let registration: Registration = { kind: "taken" };
    for (let index = 0; index < names.length; index += 1) {
      registration = await this.#register(names[(start + index) % names.length]!);
      if (registration.kind !== "taken") break;
    }
    return registration;
  }

  async #register(name: string): Promise<Registration> {
    const { host, port } = this.#server;
    // Loaded when it is needed: PeerJS is for browsers, and a library that is imported in Node must not depend on it.
    const { Peer } = await import("peerjs");
    return new Promise((resolve) => {
      const peer = new Peer(name, this.#options);
      const settle = (registration: Registration) => {
        clearTimeout(timer);
        peer.off("open");
        peer.off("error");
        // PeerJS reports every failed connection here as well; the connection itself tells those that use it.
        peer.on("error", () => {});
        if (registration.kind !== "registered") peer.destroy();
        resolve(registration);
      };
      const unreachable = (why: string) =>
        settle({ kind: "unreachable", sentence: `The signaling server at ${host}:${port} can't be reached: ${why}` });
      const timer = setTimeout(
        () => unreachable(`it didn't answer within ${registrationMilliseconds / 1000} s.`),
        registrationMilliseconds,
      );
      peer.on("open", () => settle({ kind: "registered", peer }));
      peer.on("error", (error) => {
        if (error.type === "unavailable-id") settle({ kind: "taken" });
        else unreachable(error.message);
      });
    });
  }
}

/** Once a connection stands, what the server says of its other end must not close it any more. */
function detachWhenOpen(peer: Peer, connection: DataConnection): void {
  connection.on("error", () => {});
  connection.on("open", () => {
    const connections: unknown = Reflect.get(peer.connections, connection.peer);
    if (Array.isArray(connections)) connections.splice(connections.indexOf(connection), 1);
  });
}

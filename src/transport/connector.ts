import type { ConnectionFacts } from "./proveLink";

/** A data channel, or the port through which one is relayed. */
export type DataPath =
  | { readonly kind: "channel"; readonly channel: RTCDataChannel }
  | { readonly kind: "port"; readonly port: MessagePort };

/** A peer connection whose channel is yet to open. */
export interface OpenedConnection {
  readonly id: number;
  readonly path: DataPath;
}

/** What becomes of dialling rendezvous names. */
export type MeetingEvent =
  | { readonly kind: "dialled"; readonly name: string; readonly connection: OpenedConnection }
  /** Somebody has this name and answered; the connection may still fail. */
  | { readonly kind: "answered"; readonly name: string }
  /** Nobody has this name. */
  | { readonly kind: "absent"; readonly name: string };

export type ClaimResult =
  | { readonly kind: "claimed"; readonly name: string }
  /** Others have all the names, so that the job can be found all the same. */
  | { readonly kind: "taken" }
  | { readonly kind: "unreachable"; readonly sentence: string };

/**
 * Makes peer connections, which exist in a page's main thread only. Every argument and result is plain data or can be transferred, and
 * the callbacks can be proxies, so that a worker calls the same interface over a port (connectorPort.ts).
 */
export interface Connector {
  /** A new peer connection with Ringlet's channel on it. */
  open(): Promise<OpenedConnection>;
  /** The description that the other side needs, candidates included. */
  offer(id: number): Promise<string>;
  /** Takes the other side's offer and gives the description that it needs. */
  answer(id: number, offer: string): Promise<string>;
  accept(id: number, answer: string): Promise<void>;
  facts(id: number): Promise<ConnectionFacts>;
  /** Lets what is buffered leave, then ends the connection. */
  close(id: number): Promise<void>;
  /** Dials names at the signaling server; rejects with a sentence when the server can't be reached. */
  meet(names: readonly string[], onEvent: (event: MeetingEvent) => void): Promise<void>;
  /** No more is expected of `meet`; the connections it made stay. */
  endMeeting(): Promise<void>;
  /**
   * Takes one of the names, or `names[0]` alone where there is but one, and keeps it: when the signaling server goes and comes back, it is
   * claimed again, and while others have all the names, it is tried again from time to time.
   * @returns what the first attempt came to; it goes on after that whatever this is.
   */
  claim(names: readonly string[], onVisitor: (connection: OpenedConnection) => void): Promise<ClaimResult>;
  /** Ends everything. */
  end(): Promise<void>;
}

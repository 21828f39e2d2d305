import type { ClaimResult, Connector, MeetingEvent, OpenedConnection } from "./connector";
import { carrying } from "./connectorPort";
import { relayChannel } from "./pipe";
import type { ConnectionFacts } from "./proveLink";
import { Rendezvous, type SignalingServer } from "./rendezvous";
import { fingerprintOf } from "./sessionDescription";

/** Both sides open the channel under this id; PeerJS's own, on the same connection, counts from 0. */
const channelId = 1000;
/** Host candidates come within milliseconds; a STUN server that doesn't answer isn't waited for longer than this. */
const gatheringMilliseconds = 1500;
const flushMilliseconds = 1500;
/** What every browser takes, where a browser doesn't say what it takes. */
const defaultMessageBytes = 64 * 1024;

export interface BrowserConnectorOptions {
  readonly signaling: SignalingServer;
  /** Nobody but these; PeerJS's public servers aren't used. */
  readonly iceServers: readonly RTCIceServer[];
  /** True when the links are in a worker: channels are transferred to it where that is possible, and relayed elsewhere. */
  readonly forWorker: boolean;
}

/** The connector of a page's main thread. */
export class BrowserConnector implements Connector {
  readonly #options: BrowserConnectorOptions;
  readonly #configuration: RTCConfiguration;
  readonly #connections = new Map<number, RTCPeerConnection>();
  readonly #rendezvous: Rendezvous;
  #nextId = 1;
  #transferable: boolean | null = null;

  constructor(options: BrowserConnectorOptions) {
    this.#options = options;
    this.#configuration = { iceServers: [...options.iceServers] };
    this.#rendezvous = new Rendezvous(options.signaling, this.#configuration);
    // A closed connection tells the peers at once; one whose page is gone leaves them to wait for its silence.
    addEventListener("pagehide", () => {
      for (const connection of this.#connections.values()) connection.close();
    });
  }

  async open(): Promise<OpenedConnection> {
    return this.#adopt(new RTCPeerConnection(this.#configuration));
  }

  async offer(id: number): Promise<string> {
    const connection = this.#find(id);
    return describeLocally(connection, await connection.createOffer());
  }

  async answer(id: number, offer: string): Promise<string> {
    const connection = this.#find(id);
    await connection.setRemoteDescription({ type: "offer", sdp: offer });
    return describeLocally(connection, await connection.createAnswer());
  }

  async accept(id: number, answer: string): Promise<void> {
    await this.#find(id).setRemoteDescription({ type: "answer", sdp: answer });
  }

  async facts(id: number): Promise<ConnectionFacts> {
    const connection = this.#find(id);
    // The channel may open before the browser shows the description that made it possible.
    while (connection.signalingState !== "stable") {
      if (connection.signalingState === "closed") throw new Error(`Connection ${id} is closed.`);
      await new Promise((resolve) => connection.addEventListener("signalingstatechange", resolve, { once: true }));
    }
    const { localDescription, remoteDescription, sctp } = connection;
    const maxMessageBytes = sctp?.maxMessageSize ?? defaultMessageBytes;
    return {
      fingerprints: {
        local: fingerprintOf(localDescription?.sdp ?? ""),
        remote: fingerprintOf(remoteDescription?.sdp ?? ""),
      },
      maxMessageBytes: Math.min(maxMessageBytes, Number.MAX_SAFE_INTEGER),
    };
  }

  async close(id: number): Promise<void> {
    const connection = this.#connections.get(id);
    if (connection === undefined) return;
    this.#connections.delete(id);
    setTimeout(() => connection.close(), flushMilliseconds);
  }

  async meet(names: readonly string[], onEvent: (event: MeetingEvent) => void): Promise<void> {
    await this.#rendezvous.meet(names, {
      dialled: (name, made) => {
        const connection = this.#adopt(made);
        onEvent(carrying({ kind: "dialled", name, connection }, connection));
      },
      answered: (name) => onEvent({ kind: "answered", name }),
      absent: (name) => onEvent({ kind: "absent", name }),
    });
  }

  async endMeeting(): Promise<void> {
    this.#rendezvous.endMeeting();
  }

  claim(names: readonly string[], onVisitor: (connection: OpenedConnection) => void): Promise<ClaimResult> {
    return this.#rendezvous.claim(names, (connection) => onVisitor(this.#adopt(connection)));
  }

  async end(): Promise<void> {
    this.#rendezvous.end();
    for (const id of [...this.#connections.keys()]) await this.close(id);
  }

  #find(id: number): RTCPeerConnection {
    const connection = this.#connections.get(id);
    if (connection === undefined) throw new Error(`There is no connection ${id} any more.`);
    return connection;
  }

  /** Opens Ringlet's channel. Must be called in the task in which the connection was made, on both sides. */
  #adopt(connection: RTCPeerConnection): OpenedConnection {
    const id = this.#nextId++;
    this.#connections.set(id, connection);
    const channel = connection.createDataChannel("ringlet", { negotiated: true, id: channelId, ordered: true });
    connection.addEventListener("connectionstatechange", () => {
      // A channel doesn't close by itself when its connection fails.
      if (connection.connectionState === "failed") connection.close();
    });
    if (!this.#options.forWorker || this.#canTransfer()) return carried({ id, path: { kind: "channel", channel } });
    return carried({ id, path: { kind: "port", port: relayChannel(channel) } });
  }

  #canTransfer(): boolean {
    this.#transferable ??= canTransferChannels();
    return this.#transferable;
  }
}

/** Sets the local description, and waits for its candidates so that one message carries all. */
async function describeLocally(connection: RTCPeerConnection, description: RTCSessionDescriptionInit): Promise<string> {
  await connection.setLocalDescription(description);
  if (connection.iceGatheringState !== "complete")
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, gatheringMilliseconds);
      connection.addEventListener("icegatheringstatechange", () => {
        if (connection.iceGatheringState !== "complete") return;
        clearTimeout(timer);
        resolve();
      });
    });
  return connection.localDescription?.sdp ?? "";
}

function carried(connection: OpenedConnection): OpenedConnection {
  return carrying(connection, connection);
}

function canTransferChannels(): boolean {
  const connection = new RTCPeerConnection();
  const { port1, port2 } = new MessageChannel();
  try {
    const channel = connection.createDataChannel("probe");
    port1.postMessage(channel, [channel]);
    return true;
  } catch {
    return false;
  } finally {
    port1.close();
    port2.close();
    connection.close();
  }
}

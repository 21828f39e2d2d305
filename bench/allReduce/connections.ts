/** Two RTCPeerConnections of this tab to one other: the bare channel's and Ringlet's, so that neither queues behind the other. */
export type Purpose = "bare" | "ring";

interface Connection {
  readonly peer: RTCPeerConnection;
  readonly channel: RTCDataChannel;
}

const connections = new Map<string, Connection>();
const keyOf = (rank: number, purpose: Purpose) => `${rank} ${purpose}`;

function open(rank: number, purpose: Purpose): Connection {
  const peer = new RTCPeerConnection();
  // Negotiated in the program, so that both sides make the channel at once and no message comes before its handler.
  const channel = peer.createDataChannel(purpose, { negotiated: true, id: 0, ordered: true });
  channel.binaryType = "arraybuffer";
  const connection = { peer, channel };
  connections.set(keyOf(rank, purpose), connection);
  return connection;
}

export function connectionTo(rank: number, purpose: Purpose): Connection {
  const connection = connections.get(keyOf(rank, purpose));
  if (!connection) throw new Error(`This tab has no ${purpose} connection to rank ${rank}.`);
  return connection;
}

/** An offer with all candidates in it. */
export async function offer(rank: number, purpose: Purpose): Promise<string> {
  const { peer } = open(rank, purpose);
  await peer.setLocalDescription(await peer.createOffer());
  return complete(peer);
}

export async function answer(rank: number, purpose: Purpose, sdp: string): Promise<string> {
  const { peer } = open(rank, purpose);
  await peer.setRemoteDescription({ type: "offer", sdp });
  await peer.setLocalDescription(await peer.createAnswer());
  return complete(peer);
}

export async function accept(rank: number, purpose: Purpose, sdp: string): Promise<void> {
  await connectionTo(rank, purpose).peer.setRemoteDescription({ type: "answer", sdp });
}

/** Resolves when all of this tab's channels are open. */
export async function allOpen(): Promise<void> {
  await Promise.all(
    [...connections].map(
      ([key, { channel, peer }]) =>
        new Promise<void>((resolve, reject) => {
          if (channel.readyState === "open") resolve();
          channel.addEventListener("open", () => resolve(), { once: true });
          peer.addEventListener("connectionstatechange", () => {
            if (peer.connectionState === "failed") reject(new Error(`The connection ${key} failed.`));
          });
        }),
    ),
  );
}

async function complete(peer: RTCPeerConnection): Promise<string> {
  if (peer.iceGatheringState !== "complete")
    await new Promise<void>((resolve) => {
      peer.addEventListener("icegatheringstatechange", () => {
        if (peer.iceGatheringState === "complete") resolve();
      });
    });
  const description = peer.localDescription;
  if (!description) throw new Error("A connection has no description of its own.");
  return description.sdp;
}

import { VirtualClock } from "../../base/virtualClock";
import { headerBytes } from "../../transport/frame";
import { memberId } from "../../transport/memberId";
import { SimulatedHub } from "../../transport/simulated";
import { defaultChunkBytes } from "../exchange";
import { Ring } from "../ring";

export interface ScalingOptions {
  readonly peers: number;
  /** What each member can send, and receive, in bytes per second. */
  readonly bytesPerSecond: number;
  /** One way, in milliseconds. */
  readonly latencyMilliseconds: number;
  /** What is reduced in a step: the gradients of the model. Rounded up to equal segments. */
  readonly modelBytes: number;
  readonly chunkBytes?: number;
}

export interface ScalingResult {
  readonly peers: number;
  /** From the moment all members begin until the last one has the result. */
  readonly stepMilliseconds: number;
  /** No all-reduce can be faster than its bytes: 2 (N - 1) / N of the model at full bandwidth. */
  readonly boundMilliseconds: number;
  /** What the same bytes take when every one of the ring's 2 (N - 1) hops has its latency. */
  readonly hopsMilliseconds: number;
  /** The bound as a part of the step. */
  readonly efficiency: number;
  /** Sent by the member that sent most, payloads and all of it. */
  readonly payloadBytes: number;
  readonly totalBytes: number;
  /** 2 (N - 1) / N of the model. */
  readonly boundBytes: number;
  /** Frames that the busiest member sent: its work besides adding. */
  readonly frames: number;
}

/**
 * One all-reduce of a model's gradients over a simulated ring, by the code that trains. All members share one memory full of zeros, so that a
 * thousand of them fit: times don't depend on values, and zeros stay right.
 */
export async function simulateScaling(options: ScalingOptions): Promise<ScalingResult> {
  const { peers, bytesPerSecond, latencyMilliseconds, modelBytes, chunkBytes = defaultChunkBytes } = options;
  const clock = new VirtualClock();
  const hub = new SimulatedHub({
    clock,
    bytesPerSecond,
    latency: [latencyMilliseconds, latencyMilliseconds],
    copies: false,
    maxPayload: chunkBytes,
  });
  const members = Array.from({ length: peers }, (_, index) => memberId(index.toString(16).padStart(32, "0")));
  const networks = members.map((member) => hub.join(member));
  // With equal segments all members do the same at the same moments.
  const gradients = new Float32Array(Math.ceil(modelBytes / 4 / peers) * peers);
  const rings = networks.map((network, rank) => {
    const right = members[(rank + 1) % peers]!;
    const link = peers > 1 ? hub.connect(network.self, right) : null;
    return new Ring({
      self: network.self,
      members,
      epoch: 0,
      chunkBytes,
      timeoutMilliseconds: 1e12,
      clock,
      send: (_, header, payload) => link?.send(header, payload),
      drained: () => link?.drained() ?? Promise.resolve(),
    });
  });
  let frames = 0;
  for (const [rank, network] of networks.entries())
    for (const link of network.links.values())
      link.onFrame = (frame) => {
        if (rank === 0) frames += 1;
        rings[rank]!.receive(link.peer, frame);
      };
  let running = peers;
  let end = 0;
  for (const ring of rings)
    void ring
      .allReduce(gradients, { step: 1, channel: 0 })
      .wait()
      .then(() => {
        running -= 1;
        end = clock.now();
      });
  await clock.runUntil(() => running === 0);
  const sent = networks.flatMap(({ links }) => [...links.values()].map(({ counters }) => counters));
  const boundBytes = ((2 * (peers - 1)) / peers) * gradients.byteLength;
  const boundMilliseconds = (boundBytes / bytesPerSecond) * 1000;
  const hops = 2 * (peers - 1);
  return {
    peers,
    stepMilliseconds: end,
    boundMilliseconds,
    hopsMilliseconds: hops * (latencyMilliseconds + headerTime(bytesPerSecond)) + boundMilliseconds,
    efficiency: end === 0 ? 1 : boundMilliseconds / end,
    payloadBytes: Math.max(0, ...sent.map(({ sentPayload }) => sentPayload)),
    totalBytes: Math.max(0, ...sent.map(({ sentTotal }) => sentTotal)),
    boundBytes,
    frames,
  };
}

const headerTime = (bytesPerSecond: number) => (headerBytes / bytesPerSecond) * 1000;

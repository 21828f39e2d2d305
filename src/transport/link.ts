/** A member's identity: the first 16 bytes of the SHA-256 of its public key, in lower-case hex. */
export type MemberId = string & { readonly memberId: unique symbol };

/** What a frame is about; each kind is one byte on the wire (frame.ts). */
export type FrameKind = "heartbeat" | "signal" | "control" | "chunk" | "state";

/** The fixed part of a frame. */
export interface FrameHeader {
  readonly kind: FrameKind;
  /** The generation's number; frames of older generations are refused by the receiver's job. */
  readonly epoch: number;
  /** The training step, or the operation's sequence number in a process group. */
  readonly step: number;
  /** Tells apart what runs at once in one step: the bucket of an all-reduce, the part of a state transfer. */
  readonly channel: number;
  /** Where the payload begins in the whole that it is part of, in bytes. */
  readonly offset: number;
}

/** One message of a link. `payload` belongs to the receiver. */
export interface Frame extends FrameHeader {
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** Bytes over a link since it opened: payloads, and all of it with the frames' headers. */
export interface LinkCounters {
  readonly sentPayload: number;
  readonly sentTotal: number;
  readonly receivedPayload: number;
  readonly receivedTotal: number;
}

/** A proven, ordered, reliable connection to one peer. */
export interface Link {
  readonly peer: MemberId;
  readonly counters: LinkCounters;
  /** Largest payload that one frame to this peer may carry, in bytes. */
  readonly maxPayload: number;
  /** Called with each frame, in order. Frames that arrive before it is set are kept, within bounds, and then delivered. */
  onFrame: ((frame: Frame) => void) | null;
  /** Called once when the link is gone, with a sentence saying why; at once when it is gone already. */
  onClose: ((reason: string) => void) | null;
  /** True until closed. */
  readonly open: boolean;
  /**
   * Queues a frame. The payload is not copied: its bytes must not change until they are sent. Sending waits for the
   * channel's `bufferedamountlow`, so that the channel never holds more than about 1 MiB.
   * A frame to a closed link is dropped: `onClose` tells.
   */
  send(header: FrameHeader, payload: Uint8Array<ArrayBufferLike>): void;
  /** Resolves when everything queued so far is handed to the network, or the link is closed. */
  drained(): Promise<void>;
  /** Sends what is queued where possible, then closes; the peer's `onClose` fires too. */
  close(reason: string): void;
}

/** All links of this member. The same interface stands over WebRTC, in-process and simulated links. */
export interface Network {
  readonly self: MemberId;
  readonly links: ReadonlyMap<MemberId, Link>;
  /** Called for each new proven link, whether this side dialled or the other did. */
  onLink: ((link: Link) => void) | null;
  /** Called with a sentence when someone was turned away (wrong secret, replayed proof, wrong version, ...). */
  onRefused: ((sentence: string) => void) | null;
  /**
   * Opens a link to `peer`; offer and answer travel over the proven link to `via`, which forwards them.
   * Rejects with a sentence when the peer can't be reached within the time-out.
   * When both dial at once, one link remains: the lower id's.
   */
  dial(peer: MemberId, via: MemberId): Promise<Link>;
  close(reason: string): void;
}

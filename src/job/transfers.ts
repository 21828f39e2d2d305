import { messageOf } from "../base/messageOf";
import type { Frame, Link, MemberId } from "../transport/link";
import type { Offer } from "./messages";
import type { Manifest } from "./spec";
import { IncomingTransfer, packTransfer, type TransferContents } from "./stateTransfer";

/** Bytes of a state frame's payload at most; a link may take less. */
const pieceBytes = 60 * 1024;

export interface TransfersOptions {
  readonly manifest: Manifest;
  readonly sha256: (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;
  readonly sendOffer: (to: Link, offer: Offer) => void;
  /** A transfer is here, whole and as it was sent. */
  readonly onReceived: (from: MemberId, epoch: number, contents: TransferContents) => void;
  /** What a peer sent can't be: it is to be dropped. */
  readonly onBad: (from: MemberId, sentence: string) => void;
}

/** State on its way between members: one transfer at a time from each peer. */
export class Transfers {
  readonly #options: TransfersOptions;
  readonly #incoming = new Map<MemberId, IncomingTransfer>();

  constructor(options: TransfersOptions) {
    this.#options = options;
  }

  /** Sends contents, which may change as soon as this has been called. */
  async send(link: Link, epoch: number, contents: TransferContents): Promise<void> {
    const { offer, bytes } = packTransfer(contents);
    const hash = await this.#options.sha256(bytes);
    this.#options.sendOffer(link, { kind: "offer", epoch, ...offer, hash });
    const piece = Math.min(pieceBytes, link.maxPayload);
    const header = { kind: "state", epoch, step: contents.committed, channel: 0 } as const;
    for (let offset = 0; offset < bytes.length; offset += piece)
      link.send({ ...header, offset }, bytes.subarray(offset, offset + piece));
  }

  offered(from: MemberId, offer: Offer): void {
    if (this.#incoming.has(from)) {
      this.#options.onBad(from, "It began to send a state before it had sent the one before in full.");
      return;
    }
    try {
      const transfer = new IncomingTransfer(offer, this.#options.manifest);
      this.#incoming.set(from, transfer);
      if (transfer.complete) void this.#finish(from, transfer);
    } catch (error) {
      this.#options.onBad(from, messageOf(error));
    }
  }

  receive(from: MemberId, frame: Frame): void {
    const transfer = this.#incoming.get(from);
    const problem = transfer === undefined ? "It sent a state that it hadn't announced." : transfer.receive(frame);
    if (problem !== null) this.#options.onBad(from, problem);
    else if (transfer?.complete) void this.#finish(from, transfer);
  }

  forget(peer: MemberId): void {
    this.#incoming.delete(peer);
  }

  async #finish(from: MemberId, transfer: IncomingTransfer): Promise<void> {
    this.#incoming.delete(from);
    const { what, epoch, hash } = transfer.offer;
    if ((await this.#options.sha256(transfer.bytes)) === hash)
      this.#options.onReceived(from, epoch, transfer.contents());
    else this.#options.onBad(from, `The training's ${what} that it sent doesn't have the hash that it announced.`);
  }
}

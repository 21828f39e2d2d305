import { FrameInbox } from "./frameInbox";
import type { Frame, LinkCounters, MemberId } from "./link";
import { shortId } from "./memberId";

/** What links of every kind do alike: hand out frames and the close to their users, and count bytes. */
export abstract class BaseLink {
  abstract readonly peer: MemberId;
  abstract readonly maxPayload: number;
  protected readonly inbox = new FrameInbox();
  protected readonly count = { sentPayload: 0, sentTotal: 0, receivedPayload: 0, receivedTotal: 0 };
  #closeReason: string | null = null;
  #onClose: ((reason: string) => void) | null = null;
  #closeTold = false;

  abstract close(reason: string): void;

  get counters(): LinkCounters {
    return this.count;
  }
  get open(): boolean {
    return this.#closeReason === null;
  }

  get onFrame(): ((frame: Frame) => void) | null {
    return this.inbox.handler;
  }
  set onFrame(handler: ((frame: Frame) => void) | null) {
    this.inbox.handler = handler;
  }

  get onClose(): ((reason: string) => void) | null {
    return this.#onClose;
  }
  set onClose(handler: ((reason: string) => void) | null) {
    this.#onClose = handler;
    this.tellClose();
  }

  /** @throws RangeError when a frame can't carry it. */
  protected checkSize(payload: Uint8Array): void {
    if (payload.length <= this.maxPayload) return;
    throw new RangeError(
      `A frame to member ${shortId(this.peer)} has ${payload.length} bytes; this link takes ${this.maxPayload} at most.`,
    );
  }

  /** Gives a frame to the users, and closes the link when too many wait for users. */
  protected deliver(frame: Frame): void {
    const problem = this.inbox.deliver(frame);
    if (problem !== null) this.close(`Member ${shortId(this.peer)} was dropped. ${problem}`);
  }

  /** From here on the link isn't open; `tellClose` lets the users know once the kind's own affairs are in order. */
  protected markClosed(reason: string): void {
    this.#closeReason = reason;
  }

  protected tellClose(): void {
    if (this.#closeReason === null || this.#onClose === null || this.#closeTold) return;
    this.#closeTold = true;
    this.#onClose(this.#closeReason);
  }

  /** The users hear nothing more, not even of the close. */
  protected forgetUsers(): void {
    this.inbox.handler = null;
    this.#onClose = null;
    this.#closeTold = true;
  }
}

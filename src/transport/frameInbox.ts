import type { Frame } from "./link";

/** The most that is kept for a link whose onFrame isn't set yet: payload bytes and frames. */
const limits = { bytes: 16 * 1024 * 1024, frames: 4096 };

/** Hands frames to a handler in order, and keeps those that come before there is one. */
export class FrameInbox {
  #handler: ((frame: Frame) => void) | null = null;
  #kept: Frame[] = [];
  #keptBytes = 0;

  get handler(): ((frame: Frame) => void) | null {
    return this.#handler;
  }

  set handler(handler: ((frame: Frame) => void) | null) {
    this.#handler = handler;
    // The handler may be taken away again by what it does with a frame.
    while (this.#handler !== null) {
      const frame = this.#kept.shift();
      if (frame === undefined) break;
      this.#keptBytes -= frame.payload.length;
      this.#handler(frame);
    }
  }

  /** @returns null, or why the link must be closed. */
  deliver(frame: Frame): string | null {
    if (this.#handler !== null && this.#kept.length === 0) {
      this.#handler(frame);
      return null;
    }
    this.#kept.push(frame);
    this.#keptBytes += frame.payload.length;
    return this.#keptBytes > limits.bytes || this.#kept.length > limits.frames
      ? `It sent ${this.#kept.length} frames with ${this.#keptBytes} bytes before this side was ready for any.`
      : null;
  }
}

import type { Clock } from "../base/clock";
import { headerBytes } from "../transport/frame";
import type { LinkCounters } from "../transport/link";

/** Bytes of some frames: their payloads, and with their headers. */
export class FrameCount {
  payload = 0;
  total = 0;

  add(payload: number): void {
    this.payload += payload;
    this.total += payload + headerBytes;
  }
}

/** Bytes over all links since the beginning, closed ones included, and their rates. */
export class ByteMeter {
  readonly #clock: Clock;
  readonly #live = new Set<LinkCounters>();
  #sentBefore = 0;
  #receivedBefore = 0;
  #last: { readonly at: number; readonly sent: number; readonly received: number };
  inPerSecond = 0;
  outPerSecond = 0;
  /** What the steps' all-reduces moved. */
  readonly chunksSent = new FrameCount();
  readonly chunksReceived = new FrameCount();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#last = { at: clock.now(), sent: 0, received: 0 };
  }

  add(counters: LinkCounters): void {
    this.#live.add(counters);
  }

  remove(counters: LinkCounters): void {
    if (!this.#live.delete(counters)) return;
    this.#sentBefore += counters.sentTotal;
    this.#receivedBefore += counters.receivedTotal;
  }

  get sent(): number {
    let sum = this.#sentBefore;
    for (const { sentTotal } of this.#live) sum += sentTotal;
    return sum;
  }
  get received(): number {
    let sum = this.#receivedBefore;
    for (const { receivedTotal } of this.#live) sum += receivedTotal;
    return sum;
  }

  /** Takes the rates anew, over the time since the last call; about once a second is good. */
  measure(): void {
    const { sent, received } = this;
    const at = this.#clock.now();
    const seconds = (at - this.#last.at) / 1000;
    if (seconds <= 0) return;
    this.outPerSecond = (sent - this.#last.sent) / seconds;
    this.inPerSecond = (received - this.#last.received) / seconds;
    this.#last = { at, sent, received };
  }
}

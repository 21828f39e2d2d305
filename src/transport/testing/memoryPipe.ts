import type { Clock } from "../../base/clock";
import { lowWaterBytes, type Pipe } from "../pipe";

/** A pipe in memory whose messages leave at a given rate. */
export class MemoryPipe implements Pipe {
  onOpen: (() => void) | null = null;
  onMessage: ((message: ArrayBuffer) => void) | null = null;
  onLow: (() => void) | null = null;
  onClose: ((reason: string) => void) | null = null;
  state: Pipe["state"] = "connecting";
  bufferedAmount = 0;
  /** The most that was ever buffered. */
  highest = 0;
  /** While true nothing leaves. */
  stuck = false;
  readonly sent: Uint8Array<ArrayBuffer>[] = [];
  readonly #clock: Clock;
  readonly #bytesPerMillisecond: number;
  #other: MemoryPipe | null = null;
  #buffer: Uint8Array<ArrayBuffer>[] = [];
  #leaving = false;

  constructor(clock: Clock, bytesPerMillisecond: number) {
    this.#clock = clock;
    this.#bytesPerMillisecond = bytesPerMillisecond;
  }

  static pair(clock: Clock, bytesPerMillisecond: number): readonly [MemoryPipe, MemoryPipe] {
    const [a, b] = [new MemoryPipe(clock, bytesPerMillisecond), new MemoryPipe(clock, bytesPerMillisecond)];
    a.#other = b;
    b.#other = a;
    return [a, b];
  }

  open(): void {
    this.state = "open";
    this.onOpen?.();
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    if (this.state !== "open") return;
    const copy = message.slice();
    this.sent.push(copy);
    this.#buffer.push(copy);
    this.bufferedAmount += copy.length;
    this.highest = Math.max(this.highest, this.bufferedAmount);
    this.#leave();
  }

  close(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.onClose?.("This side closed it.");
    this.#leave();
  }

  /** Puts a message in as if the peer had sent it. */
  inject(message: Uint8Array<ArrayBuffer>): void {
    this.onMessage?.(message.slice().buffer);
  }

  #leave(): void {
    if (this.#leaving || this.stuck) return;
    const message = this.#buffer[0];
    if (message === undefined) {
      if (this.state === "closed") this.#other?.closedByPeer();
      return;
    }
    this.#leaving = true;
    this.#clock.setTimeout(() => {
      this.#leaving = false;
      if (this.stuck) return;
      this.#buffer.shift();
      const before = this.bufferedAmount;
      this.bufferedAmount -= message.length;
      this.#other?.inject(message);
      if (before > lowWaterBytes && this.bufferedAmount <= lowWaterBytes) this.onLow?.();
      this.#leave();
    }, message.length / this.#bytesPerMillisecond);
  }

  closedByPeer(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.onClose?.("Its connection closed.");
  }
}

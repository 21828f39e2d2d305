import type { Schedule } from "../../src/distributed/schedule";

/** The messages of an algorithm over bare channels: what must travel, one after another, and nothing else. */
export class BareExchange {
  readonly #channels: ReadonlyMap<number, RTCDataChannel>;
  readonly #waiting = new Map<number, { messages: number; wake: (() => void) | null }>();

  constructor(channels: ReadonlyMap<number, RTCDataChannel>) {
    this.#channels = channels;
    for (const [rank, channel] of channels) {
      const inbox = { messages: 0, wake: null as (() => void) | null };
      this.#waiting.set(rank, inbox);
      channel.onmessage = () => {
        inbox.messages += 1;
        inbox.wake?.();
      };
    }
  }

  /** Exchanges messages of the schedule's lengths, each as one message of float32 values. */
  async run({ rounds }: Schedule): Promise<void> {
    for (const { sends, lanes } of rounds()) {
      for (const { to, length } of sends) this.#send(to, length);
      await Promise.all(
        [...lanes].map(async ([from, transfers]) => {
          for (const { length, forward } of transfers) {
            await this.#receive(from);
            for (const to of forward) this.#send(to, length);
          }
        }),
      );
    }
  }

  #send(to: number, length: number): void {
    this.#channels.get(to)?.send(new Uint8Array(4 * length));
  }

  async #receive(from: number): Promise<void> {
    const inbox = this.#waiting.get(from);
    if (inbox === undefined) throw new Error(`There is no channel to rank ${from}.`);
    if (inbox.messages === 0) await new Promise<void>((resolve) => (inbox.wake = resolve));
    inbox.wake = null;
    inbox.messages -= 1;
  }
}

// The bar that the ring is held against, pinned: a change here changes what every share in results.json means.
// A tab sends messages of 64 KiB to its next neighbour over an ordered, reliable data channel as fast as the channel
// takes them, and counts what comes from its previous one. Nothing looks at the bytes.

const messageBytes = 64 * 1024;
/** The channel is kept at least this full, and is filled up to the second. */
const lowWaterBytes = 256 * 1024;
const highWaterBytes = 1024 * 1024;

export class BareChannel {
  readonly #channel: RTCDataChannel;
  #receivedBytes = 0;
  #awaited: { readonly bytes: number; readonly resolve: () => void } | null = null;

  constructor(channel: RTCDataChannel) {
    this.#channel = channel;
    channel.binaryType = "arraybuffer";
    channel.bufferedAmountLowThreshold = lowWaterBytes;
    channel.onmessage = ({ data }) => {
      if (!(data instanceof ArrayBuffer)) throw new TypeError("A bare channel got a message that isn't binary.");
      this.#receivedBytes += data.byteLength;
      if (this.#awaited && this.#receivedBytes >= this.#awaited.bytes) this.#awaited.resolve();
    };
  }

  /** Resolves when the last of the messages is handed to the channel. */
  async send(bytes: number): Promise<void> {
    const message = new Uint8Array(Math.min(messageBytes, bytes));
    for (let left = bytes; left > 0; left -= message.byteLength) {
      if (this.#channel.bufferedAmount >= highWaterBytes) await this.#low();
      this.#channel.send(left < message.byteLength ? message.subarray(0, left) : message);
    }
  }

  /** Resolves when `bytes` more than at the last call have come. One call at a time. */
  receive(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        this.#receivedBytes -= bytes;
        this.#awaited = null;
        resolve();
      };
      if (this.#receivedBytes >= bytes) finish();
      else this.#awaited = { bytes, resolve: finish };
    });
  }

  #low(): Promise<void> {
    return new Promise((resolve) => {
      this.#channel.addEventListener("bufferedamountlow", () => resolve(), { once: true });
    });
  }
}

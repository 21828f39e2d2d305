/** Takes bytes from a stream in the portions that a format asks for. */
export class ByteReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  /** What came and wasn't taken yet. */
  #rest: Uint8Array = new Uint8Array(0);

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /**
   * The next `count` bytes, or fewer at the stream's end. It takes memory as bytes arrive, so that nobody's claim of a
   * length alone does.
   */
  async take(count: number): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array[] = [];
    let length = 0;
    while (length < count) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#reader.read();
        if (done) break;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, count - length);
      this.#rest = this.#rest.subarray(part.length);
      parts.push(part);
      length += part.length;
    }
    const bytes = new Uint8Array(length);
    let offset = 0;
    for (const part of parts) {
      bytes.set(part, offset);
      offset += part.length;
    }
    return bytes;
  }

  /** Whether nothing comes any more. */
  async isAtEnd(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#reader.read();
      if (done) return true;
      this.#rest = value;
    }
    return false;
  }

  /** Tells the stream's source that no more is wanted. */
  async cancel(reason?: unknown): Promise<void> {
    await this.#reader.cancel(reason);
  }
}

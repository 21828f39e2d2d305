import type { RingCollective, SendChunk } from "./ringCollective";

/**
 * One member's part of a ring all-reduce (sum of float32), as a state machine: chunks in, chunks out.
 *
 * The data is cut into as many segments as there are members; segment `s` is elements [floor(s L / N), floor((s + 1) L / N)).
 * It sets out from rank `s` and makes 2 (N - 1) hops to the right, in chunks. On the first N - 1 hops every member adds its own values
 * (reduce-scatter), so that rank `s - 1` ends with the sum; on the others everyone stores that sum (all-gather). A chunk goes on as soon as
 * it is added or stored. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.)
 *
 * Each member sends on hop `h` the segment `rank - h`, and links keep the order of messages, so what must come next is always
 * known exactly: a cursor is all the state there is, and anything else is refused.
 *
 * The sum of an element is made once, by members in ring order, and travels as bytes, so all members end with the same bits.
 * Chunks are views of the data. A view's bytes change again only after that chunk went all the way round, so never before it was sent.
 */
export class RingAllReduce implements RingCollective {
  readonly name = "All-reduce";
  readonly #data: Float32Array<ArrayBuffer>;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #rank: number;
  readonly #worldSize: number;
  readonly #chunkLength: number;
  /** The cursor: the hop being received, and the elements [at, end) of its segment that are still to come. */
  #hop = -1;
  #at = 0;
  #end = 0;
  #received = 0;

  /** @param chunkBytes the most bytes in a chunk, a multiple of 4; all members must pass the same. */
  constructor(data: Float32Array<ArrayBuffer>, rank: number, worldSize: number, chunkBytes: number) {
    if (!Number.isInteger(worldSize) || worldSize < 1 || !Number.isInteger(rank) || rank < 0 || rank >= worldSize)
      throw new RangeError(`A ring all-reduce got rank ${rank} in a world of ${worldSize}.`);
    if (!Number.isInteger(chunkBytes) || chunkBytes < 4 || chunkBytes % 4 !== 0)
      throw new RangeError(
        `A ring all-reduce got chunks of ${chunkBytes} bytes; they must be a positive multiple of 4.`,
      );
    this.#data = data;
    this.#bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#rank = rank;
    this.#worldSize = worldSize;
    this.#chunkLength = chunkBytes / 4;
  }

  /** True once the data holds the sum; nothing more comes after that. */
  get done(): boolean {
    return this.#hop >= this.#lastHop;
  }

  get received(): number {
    return this.#received;
  }
  get total(): number {
    let elements = 0;
    for (let hop = 0; hop < this.#lastHop; hop += 1) {
      const segment = this.#segmentOf(hop);
      elements += this.#boundary(segment + 1) - this.#boundary(segment);
    }
    return elements * 4;
  }

  /** Where the next chunk must begin and how long it must be, in bytes; length 0 when done. */
  get expected(): { readonly offset: number; readonly length: number } {
    return { offset: this.#at * 4, length: Math.min(this.#end - this.#at, this.#chunkLength) * 4 };
  }

  /** Sends this member's own segment. */
  start(send: SendChunk): void {
    if (this.#hop !== -1) throw new Error("A ring all-reduce was started twice.");
    this.#nextSegment();
    if (this.#worldSize === 1) return;
    const end = this.#boundary(this.#rank + 1);
    for (let at = this.#boundary(this.#rank); at < end; at += this.#chunkLength)
      send(at * 4, this.#view(at, Math.min(at + this.#chunkLength, end)));
  }

  receive(offset: number, payload: Uint8Array<ArrayBuffer>, send: SendChunk): string | null {
    if (this.done) return `got ${payload.length} bytes at offset ${offset}, expected nothing more`;
    const from = this.#at;
    const to = Math.min(this.#end, from + this.#chunkLength);
    if (offset !== from * 4 || payload.length !== (to - from) * 4)
      return `got ${payload.length} bytes at offset ${offset}, expected ${(to - from) * 4} bytes at offset ${from * 4}`;
    const hop = this.#hop;
    if (hop < this.#worldSize - 1) this.#add(from, to, payload);
    else this.#bytes.set(payload, offset);
    this.#received += payload.length;
    this.#at = to;
    if (to === this.#end) this.#nextSegment();
    if (hop + 1 < this.#lastHop) send(offset, this.#view(from, to));
    return null;
  }

  /** The number of hops; also the cursor's hop when all is received. */
  get #lastHop(): number {
    return 2 * (this.#worldSize - 1);
  }

  /** The segment that comes from the left on `hop`. */
  #segmentOf(hop: number): number {
    const segment = (this.#rank - 1 - hop) % this.#worldSize;
    return segment < 0 ? segment + this.#worldSize : segment;
  }

  #boundary(segment: number): number {
    return Math.floor((segment * this.#data.length) / this.#worldSize);
  }

  /** Moves the cursor to the next hop whose segment isn't empty. */
  #nextSegment(): void {
    do {
      this.#hop += 1;
      if (this.done) {
        this.#at = 0;
        this.#end = 0;
        return;
      }
      const segment = this.#segmentOf(this.#hop);
      this.#at = this.#boundary(segment);
      this.#end = this.#boundary(segment + 1);
    } while (this.#at === this.#end);
  }

  #add(from: number, to: number, payload: Uint8Array<ArrayBuffer>): void {
    // Frames' headers are a multiple of 4 long, so that a copy for alignment is the exception.
    const aligned = payload.byteOffset % 4 === 0 ? payload : payload.slice();
    const addend = new Float32Array(aligned.buffer, aligned.byteOffset, to - from);
    const data = this.#data;
    for (let index = from; index < to; index += 1) data[index] = data[index]! + addend[index - from]!;
  }

  #view(from: number, to: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(from * 4, to * 4);
  }
}

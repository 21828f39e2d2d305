import type { RingCollective, SendChunk } from "./ringCollective";

/**
 * One member's part of a broadcast along the ring: the root sends its data to the right in chunks, and everyone stores a chunk and sends
 * it on at once, up to the root's left neighbour.
 */
export class RingBroadcast implements RingCollective {
  readonly name = "Broadcast";
  readonly total: number;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #chunkBytes: number;
  readonly #isRoot: boolean;
  readonly #isAlone: boolean;
  readonly #forwards: boolean;
  #received = 0;

  constructor(data: Float32Array<ArrayBuffer>, rank: number, worldSize: number, root: number, chunkBytes: number) {
    if (!Number.isInteger(root) || root < 0 || root >= worldSize)
      throw new RangeError(`A broadcast got root ${root} in a world of ${worldSize}.`);
    this.#bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#chunkBytes = chunkBytes;
    this.#isRoot = rank === root;
    this.#isAlone = worldSize === 1;
    this.#forwards = !this.#isRoot && (rank + 1) % worldSize !== root;
    this.total = this.#isRoot ? 0 : this.#bytes.length;
  }

  get received(): number {
    return this.#received;
  }

  get done(): boolean {
    return this.#received === this.total;
  }

  start(send: SendChunk): void {
    if (!this.#isRoot || this.#isAlone) return;
    for (let offset = 0; offset < this.#bytes.length; offset += this.#chunkBytes)
      send(offset, this.#bytes.subarray(offset, offset + this.#chunkBytes));
  }

  receive(offset: number, payload: Uint8Array<ArrayBuffer>, send: SendChunk): string | null {
    const at = this.#received;
    const length = Math.min(this.#chunkBytes, this.total - at);
    if (length === 0) return `got ${payload.length} bytes at offset ${offset}, expected nothing more`;
    if (offset !== at || payload.length !== length)
      return `got ${payload.length} bytes at offset ${offset}, expected ${length} bytes at offset ${at}`;
    this.#bytes.set(payload, at);
    this.#received += length;
    if (this.#forwards) send(at, this.#bytes.subarray(at, at + length));
    return null;
  }
}

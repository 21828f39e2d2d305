/** Sends bytes [offset, offset + payload.length) of the data to the right neighbour. `payload` is a view of the data. */
export type SendChunk = (offset: number, payload: Uint8Array<ArrayBuffer>) => void;

/** One member's part of a collective along a ring, as a state machine: chunks in, chunks out. */
export interface RingCollective {
  /** As sentences begin with it. */
  readonly name: string;
  /** True once everything has come that this member needs. */
  readonly done: boolean;
  /** Bytes received so far, and in all. */
  readonly received: number;
  readonly total: number;
  start(send: SendChunk): void;
  /**
   * Takes in a chunk from the left neighbour and sends on what follows from it.
   * @returns null, or what is wrong with the chunk, which then changed nothing.
   */
  receive(offset: number, payload: Uint8Array<ArrayBuffer>, send: SendChunk): string | null;
}

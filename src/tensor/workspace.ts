import { type BufferSlice, type Device, type PooledBuffer, sizeClass } from "../gpu";

/**
 * Scratch buffers, shared by all plans: the k-th buffer of a size class is the same for each of them, since plans run
 * one after another. So a plan's bind groups stay valid, and memory is the largest plan's, not the sum.
 */
export class Workspace {
  private readonly classes = new Map<number, Scratch[]>();

  constructor(private readonly device: Device) {}

  /**
   * The `ordinal`-th buffer of the class that holds `bytes`. Counts the caller as a user until `release`.
   * @param what names what it is for, in the error when there is no memory for it.
   */
  acquire(bytes: number, ordinal: number, what: string): Scratch {
    const size = sizeClass(bytes);
    const scratches = this.classes.get(size) ?? [];
    this.classes.set(size, scratches);
    while (scratches.length <= ordinal) {
      const buffer = this.device.buffers.acquire(size, what);
      scratches.push({ buffer, slice: buffer.slice(0, size), users: 0 });
    }
    const scratch = scratches[ordinal]!;
    scratch.users += 1;
    return scratch;
  }

  /** A buffer that was acquired. */
  peek(size: number, ordinal: number): Scratch {
    return this.classes.get(size)![ordinal]!;
  }

  /** Ends one use of each; buffers at the end of a class that nobody uses go back to the device's pool. */
  release(used: readonly Scratch[]): void {
    for (const scratch of used) scratch.users -= 1;
    for (const scratches of this.classes.values())
      while (scratches.length > 0 && scratches.at(-1)!.users === 0)
        this.device.buffers.release(scratches.pop()!.buffer);
  }
}

export interface Scratch {
  readonly buffer: PooledBuffer;
  readonly slice: BufferSlice;
  users: number;
}

import type { BufferSlice, Device, PooledBuffer } from "../gpu";
import { bytesOf, bytesPerElement, type DType, type Words } from "./dtype";

let memoriesMade = 0;

/** Memory that outlives a flush. It gets a GPU buffer when a plan first needs it; a fresh one is all zeros. */
export class Memory {
  private buffer: PooledBuffer | null = null;
  private device: Device | null = null;
  private pending: { words: Words; at: number }[] = [];
  /** Raised by each in-place change, so that autograd can tell that a saved value is no longer what it was. */
  version = 0;
  /** Later memories have higher numbers. */
  readonly serial = memoriesMade++;
  /** Recordings that refer to the memory and have not run yet. */
  pins = 0;
  /** Why it doesn't hold what was recorded for it. */
  failure: Error | null = null;
  /** Whether its values come from elsewhere. */
  isFromElsewhere = false;
  /** Resolves when they are in it; what uses it waits until then. */
  arrival: Promise<void> | null = null;

  /** @param length words of 4 bytes. */
  constructor(
    readonly length: number,
    readonly what: string,
  ) {}

  /** How many there were so far: the `serial` of the next. */
  static get made(): number {
    return memoriesMade;
  }

  /** Puts words at an offset in words, before anything that runs later. `words` must not change after the call. */
  write(words: Words, at = 0): void {
    if (this.buffer && this.device) {
      this.device.recorder.submit();
      this.device.gpu.queue.writeBuffer(this.buffer.gpu, at * bytesPerElement, words);
    } else {
      if (at === 0 && words.length === this.length) this.pending = [];
      this.pending.push({ words, at });
    }
  }

  get hostWords(): Words | null {
    const [only, ...more] = this.pending;
    return only && more.length === 0 && only.words.length === this.length ? only.words : null;
  }

  get isOnDevice(): boolean {
    return this.buffer !== null;
  }

  /** Its buffer on `device`, made and filled at the first call. */
  on(device: Device): PooledBuffer {
    if (this.failure)
      throw new Error(`${this.what} has no value: the flush that was to compute it failed. ${this.failure.message}`, {
        cause: this.failure,
      });
    if (this.buffer) {
      if (this.device !== device)
        throw new Error(
          `${this.what} lies on a GPU device that is no longer the current one. Read tensors before you change the device.`,
        );
      return this.buffer;
    }
    const buffer = device.buffers.acquire(this.length * bytesPerElement, this.what);
    this.buffer = buffer;
    this.device = device;
    owners.register(this, { device, buffer }, this);
    const covered = this.pending.some(({ words }) => words.length === this.length);
    if (!covered) device.recorder.clear(buffer.slice(0, buffer.size));
    if (this.pending.length > 0 && !covered) device.recorder.submit();
    for (const { words, at } of this.pending) device.gpu.queue.writeBuffer(buffer.gpu, at * bytesPerElement, words);
    this.pending = [];
    return buffer;
  }

  /** Gives the buffer back, unless something recorded still refers to it. Only the memory's owner may call this. */
  release(): void {
    if (!this.buffer || !this.device || this.pins > 0) return;
    owners.unregister(this);
    this.device.buffers.release(this.buffer);
    this.buffer = null;
  }
}

const owners = new FinalizationRegistry<{ device: Device; buffer: PooledBuffer }>(({ device, buffer }) =>
  device.buffers.release(buffer),
);

/** A contiguous part of a memory that holds one tensor, counted in words. `offset` is a multiple of 64. */
export class Storage {
  constructor(
    readonly memory: Memory,
    readonly offset: number,
    readonly length: number,
  ) {}

  /** The values, where they were only written from here so far and never left for the GPU. */
  get hostWords(): Words | null {
    return this.offset === 0 && this.length === this.memory.length ? this.memory.hostWords : null;
  }

  slice(device: Device): BufferSlice {
    const bytes = Math.max(16, Math.ceil(this.length / 4) * 16);
    return this.memory.on(device).slice(this.offset * bytesPerElement, bytes);
  }
}

/** Memory for `count` elements of a type. */
export function newStorage(count: number, what: string, dtype: DType = "float32"): Storage {
  const words = Math.ceil((count * bytesOf(dtype)) / bytesPerElement);
  return new Storage(new Memory(words, what), 0, words);
}

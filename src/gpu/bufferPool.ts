import { GpuError } from "./errors";
import type { GpuStats } from "./stats";

/** A part of a buffer as it is bound to a kernel. Slices are interned, so that equal ones are identical objects. */
export interface BufferSlice {
  readonly buffer: PooledBuffer;
  /** Bytes; a multiple of the device's storage offset alignment. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
}

/** A GPU buffer that belongs to a pool. */
export class PooledBuffer {
  private readonly slices: BufferSlice[] = [];

  constructor(
    readonly gpu: GPUBuffer,
    readonly size: number,
  ) {}

  slice(offset: number, size: number): BufferSlice {
    for (const slice of this.slices) if (slice.offset === offset && slice.size === size) return slice;
    const slice = { buffer: this, offset, size };
    this.slices.push(slice);
    return slice;
  }
}

/**
 * Rounds a size up so that buffers of similar sizes can stand in for each other: four classes an octave, so at most a
 * quarter is wasted, and never under 256 bytes, so that a vec4 past the last element stays inside.
 */
export function sizeClass(bytes: number): number {
  if (bytes <= 256) return 256;
  const step = Math.max(256, 2 ** (Math.floor(Math.log2(bytes)) - 2));
  return Math.ceil(bytes / step) * step;
}

/** Smaller buffers are not asked about one by one when memory runs out. */
const largeBytes = 16 * 2 ** 20;

/** Reuses buffers by size class. What lies idle is bounded: beyond `idleLimit` bytes the longest idle are destroyed. */
export class BufferPool {
  private readonly idle: PooledBuffer[] = [];
  private idleBytes = 0;

  constructor(
    private readonly gpu: GPUDevice,
    private readonly usage: GPUBufferUsageFlags,
    private readonly stats: GpuStats,
    private readonly idleLimit: number,
    private readonly onFailure: (error: GpuError) => void,
  ) {}

  /**
   * A buffer of at least `bytes` bytes. Its content is whatever its last user left.
   * @param what names what the buffer is for, in the error.
   */
  acquire(bytes: number, what: string): PooledBuffer {
    const size = sizeClass(bytes);
    for (let i = this.idle.length - 1; i >= 0; i--) {
      const buffer = this.idle[i]!;
      if (buffer.size !== size) continue;
      this.idle.splice(i, 1);
      this.idleBytes -= size;
      return buffer;
    }
    this.check(bytes, size, what);
    this.stats.buffers += 1;
    this.stats.bytes += size;
    return new PooledBuffer(this.create(size, what), size);
  }

  release(buffer: PooledBuffer): void {
    this.idle.push(buffer);
    this.idleBytes += buffer.size;
    while (this.idleBytes > this.idleLimit && this.idle.length > 1) this.destroy(this.idle.shift()!);
  }

  /** Asks whether there was memory for a large buffer; the answer comes later. */
  private create(size: number, what: string): GPUBuffer {
    const descriptor = { size, usage: this.usage, label: what };
    if (size < largeBytes) return this.gpu.createBuffer(descriptor);
    this.gpu.pushErrorScope("out-of-memory");
    const buffer = this.gpu.createBuffer(descriptor);
    this.gpu.popErrorScope().then(
      (error) => {
        if (error)
          this.onFailure(
            new GpuError(
              `${what} needs ${size} bytes, and the GPU has no memory left for them beside the ${this.stats.bytes - size} ` +
                "in use. Make tensors smaller, for example with a smaller micro-batch, and start again with a new device.",
            ),
          );
      },
      // Rejects only when the device is lost, which reports itself.
      () => {},
    );
    return buffer;
  }

  private destroy(buffer: PooledBuffer): void {
    this.idleBytes -= buffer.size;
    this.stats.bytes -= buffer.size;
    buffer.gpu.destroy();
  }

  private check(bytes: number, size: number, what: string): void {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.gpu.limits;
    const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize);
    if (size > limit)
      throw new GpuError(
        `${what} needs ${bytes} bytes in one GPU buffer, and this device binds at most ${limit}. ` +
          "Make the tensor smaller, for example with a smaller micro-batch.",
      );
  }
}

import { messageOf } from "../base/messageOf";
import { BufferPool } from "./bufferPool";
import { DeviceLostError, GpuError } from "./errors";
import { FinishedWork } from "./finishedWork";
import { PipelineCache } from "./pipelineCache";
import { Readback } from "./readback";
import { Recorder } from "./recorder";
import { GpuStats } from "./stats";

/** Idle bytes a pool may hold before it gives buffers back to the GPU. */
const idleLimit = 256 * 2 ** 20;

/** What a device is asked for where the adapter has it. */
const optionalFeatures: readonly GPUFeatureName[] = ["shader-f16", "timestamp-query"];

/** What is known of an adapter; a browser may leave the strings empty. */
export interface AdapterInfo {
  readonly vendor: string;
  readonly architecture: string;
  readonly description: string;
}

/** A GPU with its caches and pools. Works on any `GPUDevice`: in a page, in a worker, in Node. */
export class Device {
  readonly stats = new GpuStats();
  /** Buffers that kernels read and write. */
  readonly buffers: BufferPool;
  readonly pipelines: PipelineCache;
  readonly recorder: Recorder;
  readonly readback: Readback;
  /** Through which the GPU's work is awaited. */
  readonly work: FinishedWork;
  /** Resolves, with a sentence, when the GPU goes away. */
  readonly lost: Promise<string>;
  /** Whether the adapter computes on the CPU. */
  readonly isSoftware: boolean;
  private loss: string | null = null;
  private failure: GpuError | null = null;

  constructor(
    readonly gpu: GPUDevice,
    readonly info: AdapterInfo,
  ) {
    this.buffers = new BufferPool(
      gpu,
      GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
      this.stats,
      idleLimit,
      (error) => this.fail(error),
    );
    this.work = new FinishedWork(gpu.queue);
    this.recorder = new Recorder(gpu, this.stats, this.work);
    this.pipelines = new PipelineCache(gpu, this.recorder.arena, this.stats);
    const staging = new BufferPool(
      gpu,
      GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
      this.stats,
      idleLimit,
      (error) => this.fail(error),
    );
    this.readback = new Readback(this.recorder, staging, this, this.work);
    this.isSoftware = /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(
      `${info.vendor} ${info.architecture} ${info.description}`,
    );
    this.lost = gpu.lost.then(({ reason, message }) => {
      this.loss =
        reason === "destroyed"
          ? "The GPU device was destroyed."
          : `The browser took the GPU away: ${message || "it gave no reason"}. Request a new device to go on.`;
      return this.loss;
    });
    gpu.addEventListener("uncapturederror", ({ error }) => {
      this.fail(
        new GpuError(
          error instanceof GPUOutOfMemoryError
            ? `The GPU is out of memory (${this.stats.bytes} bytes are in use): ${error.message}`
            : `The GPU refused a command: ${error.message}`,
        ),
      );
    });
  }

  /** Throws if the device is lost or has refused a command: what it computed since is not to be trusted. */
  check(): void {
    if (this.loss) throw new DeviceLostError(this.loss);
    if (this.failure) throw this.failure;
  }

  destroy(): void {
    this.gpu.destroy();
  }

  /** The first failure counts: later ones follow from it. */
  private fail(error: GpuError): void {
    this.failure ??= error;
  }

  /** The error behind a read that the browser rejected. */
  explain(reason: unknown): Error {
    if (this.failure) return this.failure;
    const why = messageOf(reason);
    return new DeviceLostError(this.loss ?? `The GPU was lost before a result could be read: ${why}`);
  }
}

/**
 * The machine's GPU with the largest limits it offers.
 * @throws GpuError with what is missing and what to do about it.
 */
export async function requestDevice(): Promise<Device> {
  if (typeof navigator === "undefined" || !navigator.gpu) {
    const secure = typeof isSecureContext === "undefined" || isSecureContext;
    throw new GpuError(
      secure
        ? "This browser has no WebGPU. Use a current Chrome, Edge, Safari or Firefox, or switch WebGPU on in its settings."
        : "WebGPU exists only in a secure context. Open this page over HTTPS or from localhost.",
    );
  }
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter)
    throw new GpuError(
      "The browser found no usable GPU. Switch hardware acceleration on in its settings, or update the graphics driver.",
    );
  const { limits, info } = adapter;
  const gpu = await adapter.requestDevice({
    requiredFeatures: optionalFeatures.filter((feature) => adapter.features.has(feature)),
    requiredLimits: {
      maxBufferSize: limits.maxBufferSize,
      maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
      maxStorageBuffersPerShaderStage: limits.maxStorageBuffersPerShaderStage,
    },
  });
  return new Device(gpu, info);
}

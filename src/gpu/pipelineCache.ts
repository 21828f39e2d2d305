import type { BufferSlice } from "./bufferPool";
import { GpuError } from "./errors";
import type { GpuStats } from "./stats";

/**
 * A kernel's source. Its bindings are all in group 0: binding 0 is the uniform block (at most `uniformBlockBytes`),
 * bindings 1, 2, ... are storage buffers with the accesses of `bindings`, in this order. Its entry point is `main`.
 */
export interface Shader {
  readonly name: string;
  readonly code: string;
  readonly bindings: readonly Access[];
  readonly constants?: Readonly<Record<string, number>>;
}

export type Access = "read" | "write";

/** The bytes that one dispatch's uniform block may take; also the alignment of dynamic offsets that every device allows. */
export const uniformBlockBytes = 256;

/** A compiled kernel. `pipeline` is null while it compiles; `ready` then resolves when it is there. */
export interface Kernel {
  readonly shader: Shader;
  readonly layout: BindingLayout;
  pipeline: GPUComputePipeline | null;
  ready: Promise<void> | null;
}

interface BindingLayout {
  readonly group: GPUBindGroupLayout;
  readonly pipeline: GPUPipelineLayout;
  readonly bindGroups: BindGroupNode;
}

/** A trie over slices. The maps are weak: the bind groups of a dropped buffer go with it. */
interface BindGroupNode {
  readonly next: WeakMap<BufferSlice, BindGroupNode>;
  bindGroup: GPUBindGroup | null;
}

const emptyNode = (): BindGroupNode => ({ next: new WeakMap(), bindGroup: null });

/** Compiles each kernel once, and makes each bind group once. */
export class PipelineCache {
  /** By source, then by constants: a source rarely has more than a few. */
  private readonly kernels = new Map<string, Kernel[]>();
  private readonly modules = new Map<string, GPUShaderModule>();
  private readonly layouts = new Map<number, BindingLayout>();

  constructor(
    private readonly gpu: GPUDevice,
    private readonly uniforms: GPUBuffer,
    private readonly stats: GpuStats,
  ) {}

  /** The kernel of a shader; starts compiling it, without waiting, at the first call. */
  kernel(shader: Shader): Kernel {
    const variants = this.kernels.get(shader.code) ?? [];
    this.kernels.set(shader.code, variants);
    for (const kernel of variants) if (sameConstants(kernel.shader.constants, shader.constants)) return kernel;
    const kernel = this.compile(shader);
    variants.push(kernel);
    return kernel;
  }

  bindGroup(kernel: Kernel, slices: readonly BufferSlice[]): GPUBindGroup {
    let node = kernel.layout.bindGroups;
    for (const slice of slices) {
      const next = node.next.get(slice) ?? emptyNode();
      node.next.set(slice, next);
      node = next;
    }
    if (node.bindGroup) return node.bindGroup;
    this.stats.bindGroups += 1;
    node.bindGroup = this.gpu.createBindGroup({
      layout: kernel.layout.group,
      entries: [
        { binding: 0, resource: { buffer: this.uniforms, size: uniformBlockBytes } },
        ...slices.map(({ buffer, offset, size }, i) => ({
          binding: i + 1,
          resource: { buffer: buffer.gpu, offset, size },
        })),
      ],
    });
    return node.bindGroup;
  }

  private compile(shader: Shader): Kernel {
    let module = this.modules.get(shader.code);
    if (!module) {
      module = this.gpu.createShaderModule({ code: shader.code, label: shader.name });
      this.modules.set(shader.code, module);
    }
    const layout = this.layout(shader.bindings);
    const kernel: Kernel = { shader, layout, pipeline: null, ready: null };
    this.stats.pipelines += 1;
    kernel.ready = this.gpu
      .createComputePipelineAsync({
        label: shader.name,
        layout: layout.pipeline,
        compute: { module, entryPoint: "main", constants: { ...shader.constants } },
      })
      .then(
        (pipeline) => {
          kernel.pipeline = pipeline;
          kernel.ready = null;
        },
        (reason: unknown) => {
          throw new GpuError(`The kernel ${shader.name} did not compile on this GPU: ${String(reason)}`);
        },
      );
    // Whoever executes the kernel awaits `ready` and sees the error; an unused one must not surface as unhandled.
    kernel.ready.catch(() => {});
    return kernel;
  }

  private layout(bindings: readonly Access[]): BindingLayout {
    const key = bindings.reduce((bits, access) => bits * 2 + (access === "write" ? 1 : 0), 1);
    const known = this.layouts.get(key);
    if (known) return known;
    const group = this.gpu.createBindGroupLayout({
      entries: [
        {
          binding: 0,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize: uniformBlockBytes },
        },
        ...bindings.map(
          (access, i): GPUBindGroupLayoutEntry => ({
            binding: i + 1,
            visibility: GPUShaderStage.COMPUTE,
            buffer: { type: access === "write" ? "storage" : "read-only-storage" },
          }),
        ),
      ],
    });
    const layout = {
      group,
      pipeline: this.gpu.createPipelineLayout({ bindGroupLayouts: [group] }),
      bindGroups: emptyNode(),
    };
    this.layouts.set(key, layout);
    return layout;
  }
}

function sameConstants(a: Shader["constants"], b: Shader["constants"]): boolean {
  if (a === b) return true;
  const keys = Object.keys(a ?? {});
  return keys.length === Object.keys(b ?? {}).length && keys.every((key) => a?.[key] === b?.[key]);
}

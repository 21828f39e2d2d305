import type { Module } from "../nn";
import { FlatParameters, type Tensor } from "../tensor";
import { getProcessGroup } from "./defaultGroup";
import type { ProcessGroup } from "./processGroup";

/**
 * A module whose replicas on all ranks stay equal, as torch's DistributedDataParallel. Backward passes here are recorded and run later,
 * so the averaging is a call of its own, between `backward()` and the optimizer's step:
 *
 *     const model = await DistributedDataParallel.create(new Net());
 *     const optimizer = optim.sgd(model.module.parameters(), ...);
 *     loss.backward();
 *     await model.averageGradients();
 *     optimizer.step();
 *
 * Parameters and gradients are packed into one buffer each, so that one readback and one all-reduce carry all.
 */
export class DistributedDataParallel<M extends Module = Module> {
  readonly #flat: FlatParameters;
  readonly #gradients: Float32Array<ArrayBuffer>;

  private constructor(
    readonly module: M,
    readonly group: ProcessGroup,
  ) {
    this.#flat = new FlatParameters(module.namedParameters());
    this.#gradients = new Float32Array(this.#flat.gradients.numel);
  }

  /** Packs the module's parameters and gives all ranks the weights of rank 0. Make the optimizer after this. */
  static async create<M extends Module>(module: M, group = getProcessGroup()): Promise<DistributedDataParallel<M>> {
    const parallel = new DistributedDataParallel(module, group);
    await group.broadcast(parallel.#flat.weights, 0).wait();
    for (const buffer of module.buffers()) if (buffer.dtype === "float32") await group.broadcast(buffer, 0).wait();
    return parallel;
  }

  forward(...inputs: Tensor[]): Tensor {
    return this.module.forward(...inputs);
  }

  /** Replaces every gradient by its mean over all ranks; the bits are the same on all. */
  async averageGradients(): Promise<void> {
    if (this.group.worldSize === 1) return;
    await this.#flat.readGradients(this.#gradients);
    await this.group.allReduce(this.#gradients, "avg").wait();
    this.#flat.gradients.write(this.#gradients);
  }
}

/**
 * Replaces the gradients of `parameters` by their means over all ranks, for models that aren't packed. Parameters without a gradient
 * are left out, and must be the same ones on all ranks.
 */
export async function averageGradients(parameters: Iterable<Tensor>, group = getProcessGroup()): Promise<void> {
  const gradients = [...parameters].flatMap(({ grad }) => (grad === null ? [] : [grad]));
  const flat = new Float32Array(gradients.reduce((sum, gradient) => sum + gradient.numel, 0));
  let offset = 0;
  for (const gradient of gradients) {
    flat.set(await gradient.data(), offset);
    offset += gradient.numel;
  }
  await group.allReduce(flat, "avg").wait();
  offset = 0;
  for (const gradient of gradients) {
    gradient.write(flat.subarray(offset, offset + gradient.numel));
    offset += gradient.numel;
  }
}

import { Module } from "../nn";
import {
  copy_,
  FlatParameters,
  noGrad,
  readAsComputed,
  registerPostAccumulateGradHook,
  type Tensor,
  zeros,
} from "../tensor";
import { BucketReducer, defaultCapMb } from "./bucketReducer";
import type { CommHook } from "./commHooks";
import { getProcessGroup } from "./defaultGroup";
import { checkReplicas } from "./distributedDataParallelCheck";
import { type JoinOptions, type JoinSettings, runJoined } from "./join";
import { NarrowedGradients } from "./narrowedGradients";
import type { ProcessGroup } from "./processGroup";
import { CollectiveError } from "./work";

export interface DistributedDataParallelOptions {
  /** Default: the group of initProcessGroup. */
  readonly processGroup?: ProcessGroup;
  /**
   * The size of a bucket of gradients, in MB (2^20 bytes). The first has at most 1 MB. Default: 25, or a sixteenth of the gradients where that
   * is less, so that even a small model's are on their way while backward runs.
   */
  readonly bucketCapMb?: number;
  /** Whether rank 0's buffers (batch norm's running moments, say) go to all ranks in each step. Default: true. */
  readonly broadcastBuffers?: boolean;
  /**
   * Whether a step may leave parameters without a gradient. One that some ranks use gets zeros from the others; one that nobody uses has
   * a `grad` of null after the step, so that optimizers pass it over. Without it such a step is an error. Default: false.
   */
  readonly findUnusedParameters?: boolean;
}

export interface AverageOptions {
  /**
   * How many samples this rank's gradients are the mean over; all ranks must say so or none. The result is then the mean over all
   * samples, as of one process with the whole batch, whatever the shares; 0 for a rank without any. Without it the result is PyTorch's:
   * the mean over ranks, in which a small share weighs as much as a large one.
   */
  readonly samples?: number;
}

/**
 * What ranks tell each other before the buckets of a step. Behind these lies for each rank whether it still has inputs, and then for each parameter
 * whether there is a gradient for it.
 */
const headerSlots = { busy: 0, weighted: 1, samples: 2, ending: 3, count: 4 } as const;

/** A step's header, summed over ranks. */
export interface StepHeader {
  /** Ranks that still have inputs, and the first of them, whose buffers go to all. */
  readonly active: number;
  readonly source: number;
  /** Of these, how many had a sample in this step. */
  readonly busy: number;
  /** How many said how many samples they had, and the sum. */
  readonly weighted: number;
  readonly samples: number;
  /** Ranks that ran out of inputs and end everyone's training. */
  readonly ending: number;
  /** By parameter. */
  readonly uses: Float32Array;
}

/**
 * A module whose replicas on all ranks stay equal, as torch's DistributedDataParallel. Backward passes here are recorded and run later,
 * so the averaging is a call of its own, between `backward()` and the optimizer's step:
 *
 *     const model = await DistributedDataParallel.create(new Net());
 *     const optimizer = new optim.SGD(model.parameters(), { learningRate: 0.1 });
 *     optimizer.zeroGrad();
 *     criterion.forward(model.forward(x), y).backward();
 *     await model.averageGradients();
 *     optimizer.step();
 *
 * Gradients lie in one buffer, in the reverse of the parameters' order, cut into buckets. A bucket is read, reduced and written back as
 * soon as backward has computed it, while the rest is still being computed, and while the bucket before it is reduced.
 */
export class DistributedDataParallel<M extends Module = Module> extends Module {
  /** Trainable parameters and their gradients, the last parameter first. */
  readonly flat: FlatParameters;
  #group: ProcessGroup;
  readonly #bucketCapMb: number;
  #reducer: BucketReducer;
  /** The buckets on the GPU. */
  readonly #ranges: readonly Tensor[];
  /** Trainable parameters in the layout's order, with the places of their gradients. */
  readonly #parameters: readonly { readonly name: string; readonly parameter: Tensor; readonly view: Tensor }[];
  /** Float32 and int32; integers travel as the bits that they are. */
  readonly #buffers: readonly { readonly tensor: Tensor; readonly values: Float32Array<ArrayBuffer> }[];
  readonly #findUnusedParameters: boolean;
  /** Parameters that a backward pass has reached since gradients were last averaged. */
  readonly #used = new Set<Tensor>();
  #hasOwnHook = false;
  /** Where the hook's type is narrow: the buckets rounded to it on the GPU. */
  #narrowed: NarrowedGradients | null = null;
  #withoutSync = 0;
  #join: JoinSettings | null = null;

  private constructor(
    readonly module: M,
    group: ProcessGroup,
    { bucketCapMb, broadcastBuffers = true, findUnusedParameters = false }: DistributedDataParallelOptions,
  ) {
    super();
    if (bucketCapMb !== undefined && !(bucketCapMb > 0))
      throw new RangeError(`DistributedDataParallel: bucketCapMb is ${bucketCapMb}; it must be above 0.`);
    const named = module.namedParameters().filter(([, { requiresGrad }]) => requiresGrad);
    if (named.length === 0)
      throw new Error(
        "DistributedDataParallel: the module has no parameter that requires a gradient, so there is nothing to average.",
      );
    named.reverse();
    this.flat = new FlatParameters(named);
    this.#parameters = named.map(([name, parameter]) => {
      const view = parameter.grad;
      if (view === null) throw new Error(`DistributedDataParallel: ${name} has no place for its gradient.`);
      if (findUnusedParameters) parameter.grad = null;
      registerPostAccumulateGradHook(parameter, () => {
        this.#used.add(parameter);
        this.#narrowed?.reached(parameter);
      });
      return { name, parameter, view };
    });
    this.#group = group;
    this.#bucketCapMb = bucketCapMb ?? defaultCapMb(this.flat.layout);
    this.#reducer = new BucketReducer(group, this.flat.layout, this.#bucketCapMb);
    this.#ranges = this.#reducer.buckets.map(({ from, to }) => this.flat.gradientRange(from, to));
    this.#buffers = broadcastBuffers
      ? module
          .buffers()
          .filter(({ dtype, numel }) => (dtype === "float32" || dtype === "int32") && numel > 0)
          .map((tensor) => ({ tensor, values: new Float32Array(tensor.numel) }))
      : [];
    this.#findUnusedParameters = findUnusedParameters;
  }

  /**
   * Compares the model with the other ranks', packs its parameters, and gives all ranks the weights and buffers of rank 0.
   * @throws CollectiveError on every rank where the models differ.
   */
  static async create<M extends Module>(
    module: M,
    options: DistributedDataParallelOptions = {},
  ): Promise<DistributedDataParallel<M>> {
    const group = options.processGroup ?? getProcessGroup();
    await checkReplicas(module, group);
    const parallel = new DistributedDataParallel(module, group, options);
    await parallel.broadcastState(0);
    return parallel;
  }

  forward(...inputs: Tensor[]): Tensor {
    return this.module.forward(...inputs);
  }

  get group(): ProcessGroup {
    return this.#group;
  }

  /** Goes on in another group, such as that of the ranks that are left after a loss, all of which have the same weights. */
  moveTo(group: ProcessGroup): void {
    const former = this.#reducer;
    this.#group = group;
    // What hooks keep for the buckets belongs to the former ranks.
    this.#reducer = new BucketReducer(group, this.flat.layout, this.#bucketCapMb);
    this.#reducer.hook = former.hook;
    this.#narrowed = this.#makeNarrowed();
    former.destroy();
  }

  /** The sizes of the buckets in elements, padding included, in the order in which they are reduced. */
  get bucketLengths(): readonly number[] {
    return this.#reducer.buckets.map(({ from, to }) => to - from);
  }

  /**
   * Lets `hook` reduce the buckets in place of a plain all-reduce. All ranks must register the same, before the first step and once. It is
   * called for two buckets at once: its collectives are to be those of the group that it is given.
   */
  registerCommHook(hook: CommHook): void {
    if (this.#hasOwnHook)
      throw new Error("DistributedDataParallel: there is a communication hook already; it takes one.");
    this.#reducer.hook = hook;
    this.#narrowed = this.#makeNarrowed();
    this.#hasOwnHook = true;
  }

  /**
   * Within `body`, averageGradients() does nothing: gradients add up here, and the first call behind it averages their sums.
   * @returns what `body` returns.
   */
  noSync<T>(body: () => T): T {
    this.#withoutSync += 1;
    const ended = () => {
      this.#withoutSync -= 1;
    };
    let isAsynchronous = false;
    try {
      const result = body();
      if (result instanceof Promise) {
        isAsynchronous = true;
        result.then(ended, ended);
      }
      return result;
    } finally {
      if (!isAsynchronous) ended();
    }
  }

  /**
   * Replaces every gradient by its mean over all ranks; the bits are the same on all.
   * @throws CollectiveError where ranks don't go together, or where a parameter has no gradient and findUnusedParameters is false.
   */
  async averageGradients({ samples }: AverageOptions = {}): Promise<void> {
    if (this.#withoutSync > 0) return;
    if (samples !== undefined && !(samples >= 0 && samples < Number.POSITIVE_INFINITY))
      throw new RangeError(`DistributedDataParallel: samples is ${samples}; it must be a number from 0.`);
    const header = this.#startHeader(samples);
    this.#attachGradients();
    const isAlone = this.group.worldSize === 1 && !this.#hasOwnHook;
    // Weights that differ between ranks are only known from the header, and then gradients are weighted here.
    const isEven = samples === undefined && this.#join?.divideByInitialWorldSize !== false;
    const narrowed = isEven ? this.#narrowed : null;
    const reads = isAlone ? [] : this.#startReads(narrowed);
    const sums = await header;
    this.#check(sums);
    if (!isAlone)
      await this.#reducer.reduce(
        reads,
        this.#weight(sums, samples),
        ({ index, gradients }) => this.#ranges[index]!.write(gradients),
        narrowed,
      );
    for (const [index, { parameter, view }] of this.#parameters.entries())
      parameter.grad = sums.uses[index] === 0 && this.#findUnusedParameters ? null : view;
    this.#used.clear();
    await this.#broadcastBuffers(sums.source, reads.slice(this.#ranges.length));
  }

  /**
   * Trains with inputs that may end earlier on some ranks: one whose `body` has ended gives zeros to the others' steps until all have
   * ended; then all take over the model of a rank that trained to the end. torch.distributed.algorithms.Join for one model.
   * Within `body`, averageGradients() must be the only collective.
   */
  async join(body: () => Promise<void>, options: JoinOptions = {}): Promise<void> {
    if (this.#join !== null) throw new Error("DistributedDataParallel: a join is under way already.");
    await runJoined(
      {
        group: this.group,
        begin: (settings) => {
          this.#join = settings;
        },
        announce: (ending) => this.#sumHeader(this.#header({ [headerSlots.ending]: ending ? 1 : 0 })),
        shadow: (sums) => this.#shadow(sums),
        takeOver: (source) => this.broadcastState(source),
      },
      body,
      options,
    );
  }

  /** Gives all ranks the weights and buffers of one. */
  async broadcastState(source: number): Promise<void> {
    const { group, module } = this;
    if (group.worldSize === 1) return;
    await group.broadcast(this.flat.weights, source).wait();
    const packed = new Set(this.#parameters.map(({ parameter }) => parameter));
    for (const tensor of new Set(module.stateDict().values()))
      if (!packed.has(tensor) && tensor.numel > 0) await group.broadcast(tensor, source).wait();
  }

  #makeNarrowed(): NarrowedGradients | null {
    const { hook, buckets } = this.#reducer;
    if (hook.narrowType === undefined) return null;
    const byName = new Map(this.#parameters.map(({ name, parameter }) => [name, parameter]));
    const parameters = buckets.map(({ entries }) => entries.flatMap(({ name }) => byName.get(name) ?? []));
    return new NarrowedGradients(buckets, this.#ranges, parameters, hook.narrowType, 1 / this.group.worldSize);
  }

  #startHeader(samples: number | undefined): Promise<StepHeader> {
    const header = this.#header({
      [headerSlots.count + this.group.rank]: 1,
      [headerSlots.busy]: samples === 0 ? 0 : 1,
      [headerSlots.weighted]: samples === undefined ? 0 : 1,
      [headerSlots.samples]: samples ?? 0,
    });
    for (const [index, { parameter, view }] of this.#parameters.entries()) {
      const isSetByHand = parameter.grad !== null && parameter.grad !== view;
      if (this.#used.has(parameter) || isSetByHand) header[headerSlots.count + this.group.worldSize + index] = 1;
    }
    return this.#sumHeader(header);
  }

  #header(slots: Readonly<Record<number, number>>): Float32Array<ArrayBuffer> {
    const header = new Float32Array(headerSlots.count + this.group.worldSize + this.#parameters.length);
    for (const [slot, value] of Object.entries(slots)) header[Number(slot)] = value;
    return header;
  }

  async #sumHeader(header: Float32Array<ArrayBuffer>): Promise<StepHeader> {
    await this.group.allReduce(header).wait();
    const first = headerSlots.count + this.group.worldSize;
    const haveInputs = header.subarray(headerSlots.count, first);
    return {
      active: haveInputs.reduce((sum, one) => sum + one, 0),
      source: haveInputs.indexOf(1),
      busy: header[headerSlots.busy]!,
      weighted: header[headerSlots.weighted]!,
      samples: header[headerSlots.samples]!,
      ending: header[headerSlots.ending]!,
      uses: header.subarray(first),
    };
  }

  /** Puts all gradients where they are reduced. */
  #attachGradients(): void {
    noGrad(() => {
      for (const { parameter, view } of this.#parameters) {
        if (parameter.grad === view) continue;
        copy_(view, parameter.grad ?? zeros(view.shape));
        if (parameter.grad !== null) parameter.grad = view;
      }
    });
  }

  /** Reads the buckets, then the buffers where this rank may have to give them to all: rank 0, unless its inputs have ended. */
  #startReads(narrowed: NarrowedGradients | null): readonly Promise<void>[] {
    const isSource = this.group.rank === 0 || this.#join !== null;
    const reads = readAsComputed([
      ...(narrowed?.reads() ??
        this.#reducer.buckets.map(({ index, gradients }) => ({ tensor: this.#ranges[index]!, into: gradients }))),
      ...(isSource ? this.#buffers.map(({ tensor, values }) => ({ tensor, into: values })) : []),
    ]);
    // One that fails ends the step; what becomes of those behind it is nobody's business.
    for (const read of reads) read.catch(() => {});
    return reads;
  }

  #check({ active, busy, weighted, ending, uses }: StepHeader): void {
    if (ending > 0)
      throw new CollectiveError(
        `DistributedDataParallel: ${ending} of ${this.group.worldSize} ranks ran out of inputs, so all end here, as throwOnEarlyTermination demands.`,
      );
    this.#checkWeights(weighted, active);
    if (this.#findUnusedParameters) return;
    const unused = this.#parameters.flatMap(({ name }, index) => {
      const missing = busy - uses[index]!;
      return missing > 0 ? [`${name} (on ${missing} of ${busy} ranks)`] : [];
    });
    if (unused.length > 0)
      throw new CollectiveError(
        `DistributedDataParallel: no backward pass has reached ${unused.reverse().slice(0, 5).join(", ")}${
          unused.length > 5 ? ` and ${unused.length - 5} more parameters` : ""
        } since gradients were last averaged. Call backward() on all ranks before averageGradients(), or pass findUnusedParameters: true if a step needn't use all parameters.`,
      );
  }

  #checkWeights(weighted: number, active: number): void {
    if (weighted > 0 && weighted < active)
      throw new CollectiveError(
        `DistributedDataParallel: ${weighted} of ${active} ranks said how many samples their gradients are of; all must, or none.`,
      );
  }

  /** What this rank's gradients count in the mean. */
  #weight({ active, weighted, samples: all }: StepHeader, samples: number | undefined): number {
    if (weighted > 0) return all === 0 ? 0 : (samples ?? 0) / all;
    return 1 / (this.#join?.divideByInitialWorldSize === false ? active : this.group.worldSize);
  }

  /** Takes part in a step of ranks that still have inputs. */
  async #shadow({ weighted, active, source }: StepHeader): Promise<void> {
    this.#checkWeights(weighted, active);
    for (const { gradients } of this.#reducer.buckets) gradients.fill(0);
    await this.#reducer.reduce([], 1);
    await this.#broadcastBuffers(source, []);
  }

  async #broadcastBuffers(source: number, reads: readonly Promise<void>[]): Promise<void> {
    const { group } = this;
    if (group.worldSize === 1 || this.#buffers.length === 0) return;
    await Promise.all(reads);
    const packed = new Float32Array(this.#buffers.reduce((sum, { values }) => sum + values.length, 0));
    let offset = 0;
    for (const { values } of this.#buffers) {
      packed.set(values, offset);
      offset += values.length;
    }
    await group.broadcast(packed, source).wait();
    if (group.rank === source) return;
    offset = 0;
    for (const { tensor, values } of this.#buffers) {
      const received = packed.subarray(offset, offset + values.length);
      tensor.write(
        tensor.dtype === "int32" ? new Int32Array(received.buffer, received.byteOffset, received.length) : received,
      );
      offset += values.length;
    }
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

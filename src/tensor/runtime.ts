import { deferred } from "../base/deferred";
import { type BufferSlice, type Device, type PendingRead, type PooledBuffer, Profiler, requestDevice } from "../gpu";
import { currentRecording, scalarOf, setBeforeRecording, storageOf, takeRecording } from "./apply";
import { bytesOf, bytesPerElement, decode, encode, type TypedArray, type Words } from "./dtype";
import { explainPlan, explainTimes } from "./explain";
import { forgetTables } from "./operators/sparseMap";
import type { Plan, Step } from "./plan";
import { PlanCache } from "./planCache";
import { planRecording } from "./planner";
import { arrivalsOf, type Milestone, type Recording, type ScalarResult, scalarOffset, scalarSlots } from "./recording";
import { describeShape, OperatorError } from "./shape";
import { type Memory, newStorage, Storage } from "./storage";
import type { Tensor } from "./tensor";
import { refuseInTrace } from "./trace";
import { Variants } from "./variants";
import { Workspace } from "./workspace";

const nothingYet = "Nothing was computed.";

/** Structures whose plans are kept; a training loop has a few. */
const plansKept = 32;
/** A value this small that was read goes on as the host's copy, so that reading losses holds no GPU memory. */
const hostElements = 16_384;

/** Runs recordings on a device, in order. */
export class Runtime {
  readonly variants = new Variants();
  private readonly workspace: Workspace;
  private readonly plans = new PlanCache<Plan>(plansKept, (plan) => plan.release());
  /** The plan that ran last, unless it was empty. */
  last: Plan | null = null;
  private ring: PooledBuffer | null = null;
  /** Steps that are being timed. */
  private timed: Step[] | null = null;

  constructor(readonly device: Device) {
    this.workspace = new Workspace(device);
  }

  /** Where results of one element survive, each until `scalarSlots` later ones. */
  get scalars(): PooledBuffer {
    this.ring ??= this.device.buffers.acquire(scalarSlots * bytesPerElement, "the ring of results of one element");
    return this.ring;
  }

  /** Records the recording's steps; the caller submits. Waits only for kernels that are still compiling. */
  run(recording: Recording, milestones?: readonly Milestone[]): void | Promise<void> {
    this.device.check();
    const plan = this.planOf(recording);
    const { ready } = plan;
    if (plan.steps.length > 0) this.last = plan;
    this.timed?.push(...plan.steps);
    const replay = () => plan.replay(this.device, recording, this.scalars.gpu, milestones);
    return ready ? ready.then(replay) : replay();
  }

  explain(): string {
    return this.last ? explainPlan(this.last) : nothingYet;
  }

  /** Plans a recording, without keeping the plan, and gives what runs it once more. */
  async rehearse(recording: Recording): Promise<{ readonly run: () => void; readonly end: () => void }> {
    const plan = this.plan(recording);
    await plan.ready;
    return {
      run: () => void plan.replay(this.device, recording, this.scalars.gpu),
      end: () => plan.release(),
    };
  }

  /** Lets everything be planned anew. */
  forgetPlans(): void {
    this.plans.clear();
  }

  /** Times each kernel of what `body` runs. */
  async explainTimes(body: () => Promise<unknown>): Promise<string> {
    const { recorder, gpu } = this.device;
    if (recorder.profiler) throw new Error("explain: kernels are being timed already; await that call first.");
    const profiler = new Profiler(gpu);
    const steps: Step[] = [];
    recorder.submit();
    recorder.profiler = profiler;
    this.timed = steps;
    try {
      await body();
    } finally {
      recorder.profiler = null;
      this.timed = null;
    }
    return steps.length > 0 ? explainTimes(steps, await profiler.finish()) : nothingYet;
  }

  private plan(recording: Recording): Plan {
    return planRecording(recording, this.device, this.workspace, this.variants);
  }

  private planOf(recording: Recording): Plan {
    return this.plans.get(recording.structure, () => this.plan(recording));
  }
}

let runtime: Promise<Runtime> | Runtime | null = null;
/** The end of the queue of device work; null when all of it was handed to the GPU. */
let tail: Promise<unknown> | null = null;

/** Runs everything that follows on `device`. Values on the one before must have been read. */
export function setDefaultDevice(device: Device): void {
  if (runtime instanceof Runtime && runtime.device === device) return;
  forgetTables();
  runtime = new Runtime(device);
}

/** The device that tensors live on: the one set, or the machine's. */
export async function getDevice(): Promise<Device> {
  return (await getRuntime()).device;
}

function getRuntime(): Promise<Runtime> | Runtime {
  if (runtime) return runtime;
  const requested = requestDevice().then((device) => {
    const made = new Runtime(device);
    if (runtime === requested) runtime = made;
    return made;
  });
  requested.catch(() => {
    if (runtime === requested) runtime = null;
  });
  runtime = requested;
  return requested;
}

export interface ExplainOptions {
  /**
   * Whether to run what is recorded, or `step`, and to time each kernel on the GPU. Each then has a pass of its own,
   * which takes longer as a whole. Default: false, what the last flush ran.
   */
  readonly times?: boolean;
  /** What to time, for example a compiled step. What it records is flushed. Default: what is recorded so far. */
  readonly step?: () => unknown;
}

/** Takes one variant wherever a kernel has it, from the next plan on; null: those that were measured. */
export async function forceVariant(name: string | null): Promise<void> {
  const on = await getRuntime();
  on.variants.forced = name;
  on.forgetPlans();
}

/**
 * What the last flush ran, for a person to read: a line for each kernel, with the operators that it computes, its
 * tensors, the bytes that it moves and the operations that it takes; where asked for, also its time on the GPU and what
 * share of all time that is.
 *
 *     console.log(await explain({ times: true, step: () => step(x, y) }));
 *
 * @throws GpuError where times are asked for and the device has no timestamps.
 */
export async function explain({ times = false, step }: ExplainOptions = {}): Promise<string> {
  const on = await getRuntime();
  if (!times) return on.explain();
  if (step) await flush();
  // Whatever is on its way is not what was asked for.
  await tail;
  return on.explainTimes(async () => {
    await step?.();
    await flush();
  });
}

/** What the last flush ran, unless nothing was computed yet. */
export const lastPlan = async (): Promise<Plan | null> => (await getRuntime()).last;

/** Runs a task after all device work before it: at once if there is none. */
export function enqueue<T>(task: (runtime: Runtime) => T | Promise<T>): T | Promise<T> {
  const ready = getRuntime();
  if (!tail && !(ready instanceof Promise)) {
    try {
      const result = task(ready);
      return result instanceof Promise ? chain(result) : result;
    } catch (reason) {
      return Promise.reject(reason);
    }
  }
  const before = tail ?? Promise.resolve();
  return chain(before.then(() => ready).then(task));
}

function chain<T>(work: Promise<T>): Promise<T> {
  const settled = work.then(
    () => {},
    () => {},
  );
  tail = settled;
  void settled.then(() => {
    if (tail === settled) tail = null;
  });
  return work;
}

const readAdvice = "Return the tensor, and read it after the call";
const flushAdvice = "Call flush() outside of it";

/**
 * Runs what was recorded: in-place changes, and values that survive. Resolves when the work is handed to the GPU, not
 * when it is done; but it waits when the GPU is many submits behind, so that a loop of flushes can't run far ahead.
 * Rejects where that failed, or a call of a compiled step since the last flush.
 */
export async function flush(): Promise<void> {
  refuseInTrace("flushes in the middle", flushAdvice);
  settleReads();
  const recording = takeRecording();
  const isEmpty = recording.graph.nodes.length === 0 && recording.milestones.length === 0;
  // Nothing was recorded, and nothing ran: no device is needed.
  if (isEmpty && runtime === null) return;
  const roomOf = (on: Runtime) => ({ until: on.device.recorder.room() });
  const room = await enqueue((on) => (isEmpty ? roomOf(on) : execute(on, recording, () => roomOf(on))));
  await room.until;
  const failed = unreported;
  unreported = null;
  if (failed) throw failed.reason;
}

/** Runs what was recorded, in its turn, without waiting. Whoever uses what it should have computed sees why it failed. */
export function flushRecorded(): void {
  settleReads();
  const recording = takeRecording();
  if (recording.graph.nodes.length > 0 || recording.milestones.length > 0) runRecording(recording);
}

/**
 * Runs a closed recording in its turn, without waiting.
 * @param before is called when it is its turn.
 */
export function runRecording(recording: Recording, before?: () => void): void {
  const running = enqueue((on) => {
    before?.();
    return execute(on, recording, () => {});
  });
  // The recording itself tells whoever uses its results, and the next flush tells all others.
  if (running instanceof Promise)
    running.catch((reason: unknown) => {
      unreported ??= { reason };
    });
}

/** Why something failed that nobody waited for. */
let unreported: { readonly reason: unknown } | null = null;

function execute<T>(
  on: Runtime,
  recording: Recording,
  then: () => T,
  milestones?: readonly Milestone[],
): T | Promise<T> {
  const finish = () => {
    const result = then();
    on.device.recorder.submit();
    recording.finish();
    return result;
  };
  const fail = (reason: unknown): never => {
    recording.fail(reason instanceof Error ? reason : new Error(String(reason)));
    throw reason;
  };
  try {
    const running = on.run(recording, milestones);
    return running ? running.then(finish).catch(fail) : finish();
  } catch (reason) {
    return fail(reason);
  }
}

/** Reads a tensor's value: a copy in row-major order. Flushes. */
export async function read(tensor: Tensor): Promise<TypedArray> {
  refuseInTrace("reads a value in the middle", readAdvice);
  const { dtype, numel } = tensor;
  const scalar = scalarOf(tensor);
  const storage = scalar ? null : storageOf(tensor);
  const words = Math.ceil((numel * bytesOf(dtype)) / bytesPerElement);
  const values = await readValues(scalar ?? storage!, words, (bytes) => decode(bytes, numel, dtype));
  moveToHost(tensor, storage, values);
  return values;
}

/** Reads a float32 tensor into `into`, of its number of elements. Flushes. */
export async function readInto(tensor: Tensor, into: Float32Array): Promise<Float32Array> {
  refuseInTrace("reads a value in the middle", readAdvice);
  const { numel } = tensor;
  if (into.length !== numel)
    throw new OperatorError("read", `the array has ${into.length} elements; expected the tensor's ${numel}`);
  return readValues(storageOf(tensor), numel, (bytes) => {
    into.set(new Float32Array(bytes, 0, numel));
    return into;
  });
}

/** Starts a read of a storage behind what is recorded so far, in a submit of its own. */
export function startRead(device: Device, storage: Storage): PendingRead {
  const pending = device.readback.start(storage.slice(device), storage.length * bytesPerElement);
  device.recorder.submit();
  return pending;
}

/**
 * Flushes, and reads tensors that have memory of their own into arrays of their words: float32 as they are, and narrow
 * floats as their bits, two in a word. Each read is handed to the GPU as soon as everything that changes its tensor is:
 * the rest is computed while that one is on its way.
 */
export function readAsComputed(
  reads: readonly { readonly tensor: Tensor; readonly into: Float32Array }[],
): Promise<void>[] {
  refuseInTrace("reads a value in the middle", readAdvice);
  settleReads();
  const storages = reads.map(({ tensor, into }) => {
    const storage = storageOf(tensor);
    if (into.length !== storage.length)
      throw new OperatorError(
        "readAsComputed",
        `the array has ${into.length} elements; expected the tensor's ${storage.length}`,
      );
    return storage;
  });
  const started = reads.map(() => deferred<PendingRead>());
  const recording = takeRecording();
  const run = enqueue((on) =>
    execute(
      on,
      recording,
      () => {},
      storages.map((storage, i) => ({
        storage,
        reached: (device) => started[i]!.resolve(startRead(device, storage)),
      })),
    ),
  );
  if (run instanceof Promise)
    run.catch((reason: unknown) => {
      for (const { reject } of started) reject(reason instanceof Error ? reason : new Error(String(reason)));
    });
  return reads.map(async ({ into }, i) => {
    const pending = await started[i]!.promise;
    await pending.finish((bytes) => into.set(new Float32Array(bytes, 0, into.length)));
  });
}

async function readValues<T>(from: Readable, length: number, use: (bytes: ArrayBuffer) => T): Promise<T> {
  reads ??= new ReadBatch();
  const pending = await reads.add(from, length * bytesPerElement);
  return pending.finish(use);
}

type Readable = Storage | ScalarResult;

const sliceOf = (from: Readable, { device, scalars }: Runtime): BufferSlice =>
  from instanceof Storage ? from.slice(device) : scalars.slice(scalarOffset(from, device), bytesPerElement);

/**
 * Reads that were asked for in one go, with nothing recorded between them: they share one flush, so that
 * `Promise.all([a.item(), b.item()])` finds both.
 */
class ReadBatch {
  private readonly wanted: { readonly from: Readable; readonly bytes: number }[] = [];
  private readonly started: Promise<readonly PendingRead[]>;
  /** Flushes, and starts the reads. */
  readonly flush: () => void;

  constructor() {
    let resolve: (reads: readonly PendingRead[] | Promise<readonly PendingRead[]>) => void;
    this.started = new Promise((settle) => {
      resolve = settle;
    });
    this.flush = () => {
      const recording = takeRecording();
      const start = (on: Runtime) =>
        this.wanted.map(({ from, bytes }) => on.device.readback.start(sliceOf(from, on), bytes));
      const storages = this.wanted.flatMap(({ from }) => (from instanceof Storage ? from : []));
      resolve(
        enqueue((on) => {
          const arrivals = arrivalsOf(storages);
          if (!arrivals) return execute(on, recording, () => start(on));
          // What is wanted may come from what is recorded.
          const running = Promise.resolve(execute(on, recording, () => arrivals));
          return running.then(() => {
            const pending = start(on);
            on.device.recorder.submit();
            return pending;
          });
        }),
      );
    };
    setBeforeRecording(settleReads);
    queueMicrotask(() => {
      if (reads === this) settleReads();
    });
  }

  async add(from: Readable, bytes: number): Promise<PendingRead> {
    const index = this.wanted.push({ from, bytes }) - 1;
    return (await this.started)[index]!;
  }
}

let reads: ReadBatch | null = null;

/** Hands the reads asked for so far to the GPU, so that what follows can't change what they see. */
export function settleReads(): void {
  const batch = reads;
  reads = null;
  setBeforeRecording(null);
  batch?.flush();
}

/** Lets a small value that was read live on as data, so that its GPU memory serves the next step's. */
function moveToHost(tensor: Tensor, storage: Storage | null, values: TypedArray): void {
  const { source, shape, numel, dtype } = tensor;
  if (source.kind !== "node" || source.storage !== storage || numel > hostElements) return;
  source.storage = newStorage(numel, `a tensor of shape ${describeShape(shape)}`, dtype);
  source.storage.memory.write(encode(values, dtype));
  storage?.memory.release();
}

/** Overwrites a storage after everything recorded so far; `words` may change after the call. */
export function writeStorage(storage: Storage, words: Words): void {
  const { memory, offset } = storage;
  if (tail || !memory.isOnDevice) {
    const copy = words.slice();
    if (tail) inTurn(() => memory.write(copy, offset), memory);
    else memory.write(copy, offset);
  } else memory.write(words, offset);
}

/** Runs a write in its turn; if it can't run, whoever uses the memory sees why. */
function inTurn(write: () => void, memory: Memory): void {
  Promise.resolve(enqueue(write)).catch((reason: unknown) => {
    memory.failure = reason instanceof Error ? reason : new Error(String(reason));
  });
}

export const isRecorded = (storage: Storage): boolean => currentRecording().uses(storage.memory);

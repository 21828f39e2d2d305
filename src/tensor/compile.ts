import { areGradientsEnabled, currentRecording, recordApart, storageOf } from "./apply";
import { currentRegion } from "./autocast";
import type { DType } from "./dtype";
import type { Recording } from "./recording";
import { flushRecorded, runRecording } from "./runtime";
import { OperatorError, type Shape, sameShape } from "./shape";
import { Memory, newStorage, Storage } from "./storage";
import { type Source, Tensor, tensorsMade } from "./tensor";
import { type Guard, isTracing, Trace, traced } from "./trace";

/** What a compiled step takes: tensors are bound anew at each call; each other value has a recording of its own. */
export type StepArgument = Tensor | number | boolean | string | null | undefined;

type StepResult = Tensor | readonly Tensor[] | { readonly [name: string]: Tensor } | undefined;

/** Recordings a step may have. More say that something changes at each call. */
const tracesKept = 16;

/**
 * A step, forward pass to optimizer, that is recorded at the first call and run again after that without calling the
 * function: nothing is recorded, hashed or planned, as with jax.jit. Each call gives the bits that the step gives
 * without `compile` and a flush behind it.
 *
 *     const step = compile((x: Tensor, y: Tensor) => {
 *       optimizer.zeroGrad();
 *       const loss = crossEntropy(model.forward(x), y);
 *       loss.backward();
 *       optimizer.step();
 *       return loss;
 *     });
 *     for (const [x, y] of batches) losses.push(await step(x, y).item());
 *
 * What follows each call:
 * - **Arguments.** Tensors are bound anew. A shape, a dtype, or another value of an argument that is no tensor makes
 *   a further recording. Within the step a tensor argument is a leaf: its `grad` is not seen outside.
 * - **Tensors from outside** (parameters, buffers, gradients, an optimizer's state) are used and changed where they
 *   are. The step is recorded again when one was moved, got or lost its `grad`, or was frozen; so the first call, which
 *   makes the gradients, is followed by one more recording.
 * - **Settings**: the autocast region, whether gradients are recorded, whether modules are in training, and what else
 *   is read through `observed`.
 * - **Numbers** taken through `liveScalars` are new at each call: random draws, an optimizer's learning rate and count
 *   of steps. Every other number is part of the recording, as is all that the function does beside recording: a
 *   schedule's `step()`, a counter, a log belong outside.
 * - **Results** are cut off from how they were made. One element survives as any loss does; a larger one is kept, in
 *   memory of its own for each call. What else the step marks by `keep()` holds the last call's value.
 *
 * A call runs what was recorded before it. Await `flush()`, or a value, every so often, so that calls don't run far
 * ahead of the GPU.
 *
 * @param step returns a tensor, a list of tensors, an object of tensors, or nothing.
 * @throws OperatorError where the step can't be run again: it is asynchronous, reads a value or flushes in the middle,
 * writes values from the host, waits for other members, changes in place what it has made itself, or is recorded anew at
 * each call.
 */
export function compile<Arguments extends readonly StepArgument[], Result>(
  step: (...args: Arguments) => Result,
): (...args: Arguments) => Result;
export function compile(step: (...args: StepArgument[]) => unknown): (...args: StepArgument[]) => unknown {
  const recorded: CompiledStep[] = [];
  return (...args) => {
    // A step within a step is a part of it.
    if (isTracing()) return step(...args);
    const bound = args.map(bind);
    flushRecorded();
    const known = recorded.findIndex((one) => one.fits(bound));
    const [found] = known < 0 ? [null] : recorded.splice(known, 1);
    if (!found && recorded.length >= tracesKept) forget(recorded, bound);
    const compiled = found ?? CompiledStep.record(step, bound);
    recorded.push(compiled);
    return compiled.run(bound, found !== null);
  };
}

/** Makes room, unless the step would just be recorded again and again. */
function forget(recorded: CompiledStep[], bound: readonly Binding[]): void {
  const changes = new Set(recorded.map((one) => one.mismatch(bound)));
  const [what] = changes;
  if (changes.size === 1 && what !== sizes)
    throw new OperatorError(
      "compile",
      `the step was recorded ${tracesKept} times, since this changes at each call: ${what}. Keep it as it is ` +
        "between calls (gradients: zeroGrad(), not null), pass numbers that change as tensors, or don't compile the step",
    );
  recorded.shift();
}

/** What may well differ from call to call. */
const sizes = "the tensors that the step takes";

/** An argument of one call. */
type Binding =
  | { readonly kind: "constant"; readonly value: Exclude<StepArgument, Tensor> }
  | { readonly kind: "tensor"; readonly input: Input; readonly storage: Storage };

/** What of an argument the recording depends on. */
interface Input {
  readonly shape: Shape;
  readonly dtype: DType;
  readonly requiresGrad: boolean;
}

function bind(value: StepArgument): Binding {
  if (!(value instanceof Tensor)) return { kind: "constant", value };
  const { shape, dtype, requiresGrad } = value;
  return { kind: "tensor", input: { shape, dtype, requiresGrad }, storage: storageOf(value) };
}

/** One recording of a step, with what it holds for. */
class CompiledStep {
  private readonly isDifferentiating = areGradientsEnabled();
  private readonly castsTo = currentRegion()?.dtype ?? null;
  private readonly guards: readonly Guard[];
  /** The memories that it uses beside the arguments'. */
  private readonly ownMemories: ReadonlySet<Memory>;
  private readonly bound: readonly Binding[];
  /** Cut off from how it was made. */
  private readonly result: StepResult;
  /** By a result's source: which argument that is. */
  private readonly argumentOf = new Map<Source, number>();

  private constructor(
    private readonly trace: Trace,
    bound: readonly Binding[],
    private readonly recording: Recording,
    result: StepResult,
    args: readonly (Tensor | null)[],
  ) {
    this.guards = trace.guards;
    const given = new Set(bound.flatMap((binding) => (binding.kind === "tensor" ? [binding.storage] : [])));
    const used = [...recording.leaves.values(), ...recording.outputs.values()].filter((storage) => !given.has(storage));
    this.ownMemories = new Set([...used, ...trace.capturedStorages].map(({ memory }) => memory));
    this.bound = this.withoutValues(bound);
    for (const [i, argument] of args.entries()) if (argument) this.argumentOf.set(argument.source, i);
    this.result = mapResult(result, (tensor) => tensor.detach());
  }

  /** Puts empty storages in the arguments' places, so that the first call's don't live as long as the step. */
  private withoutValues(bound: readonly Binding[]): Binding[] {
    const storages = new Map<Storage, Storage>();
    const memories = new Map<Memory, Memory>();
    for (const binding of bound) {
      if (binding.kind === "constant" || this.ownMemories.has(binding.storage.memory)) continue;
      const { memory, offset, length } = binding.storage;
      const empty = memories.get(memory) ?? new Memory(memory.length, "an argument of a compiled step");
      empty.isFromElsewhere = memory.isFromElsewhere;
      memories.set(memory, empty);
      if (!storages.has(binding.storage)) storages.set(binding.storage, new Storage(empty, offset, length));
    }
    for (const [node, storage] of this.recording.leaves)
      this.recording.leaves.set(node, storages.get(storage) ?? storage);
    return bound.map((binding) =>
      binding.kind === "constant" ? binding : { ...binding, storage: storages.get(binding.storage) ?? binding.storage },
    );
  }

  static record(step: (...args: StepArgument[]) => unknown, bound: readonly Binding[]): CompiledStep {
    const firstTensor = tensorsMade();
    const firstMemory = Memory.made;
    const args = bound.map((binding) => {
      if (binding.kind === "constant") return binding.value;
      const { shape, dtype, requiresGrad } = binding.input;
      return new Tensor(shape, dtype, { kind: "storage", storage: binding.storage }, requiresGrad, null);
    });
    const tensors = args.map((arg) => (arg instanceof Tensor ? arg : null));
    const trace = new Trace(new Set(tensors.filter((arg) => arg !== null)), firstTensor);
    try {
      const { recording, result } = recordApart(() =>
        traced(trace, () => {
          const returned = checkedResult(step(...args));
          for (const tensor of tensorsOf(returned)) surviving(tensor);
          checkRecording(currentRecording(), trace, firstMemory);
          return returned;
        }),
      );
      // Each run holds on to what it uses.
      recording.unpin();
      return new CompiledStep(trace, bound, recording, result, tensors);
    } catch (reason) {
      trace.restoreGradients();
      throw reason;
    }
  }

  fits(bound: readonly Binding[]): boolean {
    return this.mismatch(bound) === null;
  }

  /** What differs from when the step was recorded; null for nothing. */
  mismatch(bound: readonly Binding[]): string | null {
    if (areGradientsEnabled() !== this.isDifferentiating) return "whether gradients are recorded";
    if ((currentRegion()?.dtype ?? null) !== this.castsTo) return "the autocast region";
    if (bound.length !== this.bound.length) return "the number of arguments";
    for (const [i, binding] of bound.entries())
      if (!this.isAlike(this.bound[i]!, binding, bound))
        return binding.kind === "tensor" ? sizes : `the value of argument ${i}`;
    return this.guards.find((guard) => !guard.holds())?.what ?? null;
  }

  private isAlike(before: Binding, now: Binding, bound: readonly Binding[]): boolean {
    if (before.kind === "constant" || now.kind === "constant")
      return before.kind === "constant" && now.kind === "constant" && Object.is(before.value, now.value);
    const { shape, dtype, requiresGrad } = before.input;
    if (!sameShape(shape, now.input.shape) || dtype !== now.input.dtype || requiresGrad !== now.input.requiresGrad)
      return false;
    // Kernels are planned for memories that overlap as they did.
    if (before.storage === now.storage) return true;
    const { memory, offset, length } = now.storage;
    return (
      !this.ownMemories.has(memory) &&
      !this.ownMemories.has(before.storage.memory) &&
      offset === before.storage.offset &&
      length === before.storage.length &&
      memory.length === before.storage.memory.length &&
      memory.isFromElsewhere === before.storage.memory.isFromElsewhere &&
      bound.every((other, j) => {
        const otherBefore = this.bound[j]!;
        if (other.kind === "constant" || otherBefore.kind === "constant") return true;
        return (
          (other.storage === now.storage) === (otherBefore.storage === before.storage) &&
          (other.storage.memory === memory) === (otherBefore.storage.memory === before.storage.memory)
        );
      })
    );
  }

  /** Runs the recording on arguments that fit. */
  run(bound: readonly Binding[], isAgain: boolean): StepResult {
    const { recording, trace } = this;
    const places = new Map<Storage, Storage>();
    for (const [i, before] of this.bound.entries()) {
      const now = bound[i]!;
      if (before.kind === "tensor" && now.kind === "tensor" && before.storage !== now.storage)
        places.set(before.storage, now.storage);
    }
    const returned = new Map<Storage, Storage>();
    for (const { source } of tensorsOf(this.result)) {
      if (source.kind !== "node" || !source.storage || source.recording !== recording) continue;
      const { length, memory } = source.storage;
      returned.set(source.storage, newStorage(length, memory.what));
    }
    const run = recording.again(places, returned);
    const values = isAgain ? trace.live.map(({ fresh }) => fresh()) : trace.live.map(({ values }) => [...values]);
    if (isAgain) for (const node of run.changed) run.leaves.get(node)!.memory.version += 1;
    runRecording(run, () => {
      for (const [i, { values: held }] of trace.live.entries()) {
        const fresh = values[i]!;
        for (let k = 0; k < held.length; k++) held[k] = fresh[k]!;
      }
    });
    return mapResult(this.result, (tensor) => this.resultOf(tensor, run, bound, returned));
  }

  private resultOf(
    tensor: Tensor,
    run: Recording,
    bound: readonly Binding[],
    returned: ReadonlyMap<Storage, Storage>,
  ): Tensor {
    const { shape, dtype, source } = tensor;
    if (source.kind === "node" && source.recording === this.recording) {
      const storage = source.storage && returned.get(source.storage)!;
      return new Tensor(shape, dtype, { kind: "node", recording: run, index: source.index, storage }, false, null);
    }
    const given = bound[this.argumentOf.get(source) ?? -1];
    if (given?.kind !== "tensor") return tensor.detach();
    return new Tensor(shape, dtype, { kind: "storage", storage: given.storage }, false, null);
  }
}

/** Lets a result survive the step: one element in the device's ring, more in memory of its own. */
function surviving(tensor: Tensor): void {
  const { source } = tensor;
  if (source.kind === "storage") return;
  const isInRing = source.kind === "node" && source.recording === currentRecording() && tensor.numel === 1;
  if (isInRing && !source.storage) currentRecording().survive(source.index);
  else storageOf(tensor);
}

function checkedResult(result: unknown): StepResult {
  if (result instanceof Promise)
    throw new OperatorError(
      "compile",
      "the step is asynchronous; expected a function that records everything before it returns",
    );
  if (result === undefined || result instanceof Tensor) return result;
  if (Array.isArray(result) && result.every((tensor) => tensor instanceof Tensor)) return result;
  if (typeof result === "object" && result !== null) {
    const entries = Object.entries(result);
    const tensors = entries.filter((entry): entry is [string, Tensor] => entry[1] instanceof Tensor);
    if (tensors.length === entries.length) return Object.fromEntries(tensors);
  }
  throw new OperatorError(
    "compile",
    `the step returns ${String(result)}; expected a tensor, a list of tensors, an object of tensors, or nothing`,
  );
}

/** Throws where a recording, run again, would not do what the step does. */
function checkRecording(recording: Recording, trace: Trace, firstMemory: number): void {
  const cant = (what: string, advice: string): never => {
    throw new OperatorError("compile", `the step ${what}, which can't be recorded and run again. ${advice}`);
  };
  if (trace.refusal) throw trace.refusal;
  if (recording.milestones.length > 0)
    cant("hands values to the host or to other members in the middle", "Run it without compile");
  if (recording.scalarLeaves.size > 0)
    cant("uses a result of one element from before", "Pass it as an argument, or call keep() on it");
  const seen = new Set<number>();
  for (const { op, inputs } of recording.graph.nodes) {
    const [target] = inputs;
    if (target !== undefined && recording.changed.has(target) && !seen.has(target)) {
      const isNew = recording.leaves.get(target)!.memory.serial >= firstMemory;
      if (isNew && op !== "copy_" && op !== "zero_")
        cant(`changes in place a tensor that it makes itself (${op})`, "Make it once, outside of the step");
    }
    for (const input of inputs) seen.add(input);
  }
}

function tensorsOf(result: StepResult): readonly Tensor[] {
  if (result === undefined) return [];
  if (result instanceof Tensor) return [result];
  return isList(result) ? result : Object.values(result);
}

function mapResult(result: StepResult, map: (tensor: Tensor) => Tensor): StepResult {
  if (result === undefined) return undefined;
  if (result instanceof Tensor) return map(result);
  if (isList(result)) return result.map(map);
  return Object.fromEntries(Object.entries(result).map(([name, tensor]) => [name, map(tensor)]));
}

const isList = (result: readonly Tensor[] | { readonly [name: string]: Tensor }): result is readonly Tensor[] =>
  Array.isArray(result);

import { autocastInputs } from "./autocast";
import { isFloating, isNarrow, promoteTypes } from "./dtype";
import type { Attributes } from "./graph";
import { to } from "./operators/elementwise";
import type { Operator } from "./operators/table";
import { isReplaying, noteCall } from "./recomputation";
import { Recording, type ScalarResult } from "./recording";
import { describeShape, sizeOf } from "./shape";
import { newStorage, type Storage } from "./storage";
import { type Source, Tensor } from "./tensor";
import { noteUse } from "./trace";

let recording = new Recording();
let gradientsEnabled = true;
let scalarsSurvive = true;
let beforeRecording: (() => void) | null = null;

export const currentRecording = (): Recording => recording;

/** Calls `run` before the next operation is recorded; null: nothing. */
export function setBeforeRecording(run: (() => void) | null): void {
  beforeRecording = run;
}

/** Closes the current recording and starts the next. */
export function takeRecording(): Recording {
  const taken = recording;
  taken.close();
  recording = new Recording();
  return taken;
}

/** What `body` records, closed, in a recording of its own. Where it throws, nothing of it will run. */
export function recordApart<T>(body: () => T): { readonly recording: Recording; readonly result: T } {
  const around = recording;
  recording = new Recording();
  try {
    const result = body();
    recording.close();
    return { recording, result };
  } catch (reason) {
    recording.abandon();
    throw reason;
  } finally {
    recording = around;
  }
}

/** Runs `body` without recording how tensors were made, so that nothing in it can be differentiated. */
export function noGrad<T>(body: () => T): T {
  return withGradients(false, body);
}

export function withGradients<T>(enabled: boolean, body: () => T): T {
  const before = gradientsEnabled;
  gradientsEnabled = enabled;
  try {
    const result = body();
    if (result instanceof Promise)
      throw new Error(
        "noGrad, checkpoint: the function is asynchronous; expected one that records everything before it returns.",
      );
    return result;
  } finally {
    gradientsEnabled = before;
  }
}

/** Runs `body`, whose results of one element nobody gets to see: they don't survive. */
export function withoutScalars<T>(body: () => T): T {
  const before = scalarsSurvive;
  scalarsSurvive = false;
  try {
    return body();
  } finally {
    scalarsSurvive = before;
  }
}

export const areGradientsEnabled = (): boolean => gradientsEnabled;

/** Records one operation. Those that don't take narrow floats compute float32 from them, and the result is cast back. */
export function apply<A extends Attributes>(
  operator: Operator<A>,
  inputs: readonly Tensor[],
  attributes: A,
  scalars: readonly number[] = [],
): Tensor {
  const cast = autocastInputs(operator.name, inputs);
  if (operator.takesNarrow || !cast.some(({ dtype }) => isNarrow(dtype)))
    return record(operator, cast, attributes, scalars);
  const wide = withoutScalars(() => cast.map((input) => (isNarrow(input.dtype) ? to(input, "float32") : input)));
  if (operator.infer(wide, attributes).dtype !== "float32") return record(operator, wide, attributes, scalars);
  const type = cast.flatMap(({ dtype }) => (isFloating(dtype) ? [dtype] : [])).reduce(promoteTypes);
  const compute = () => record(operator, wide, attributes, scalars);
  // What is rounded is seen by nobody.
  return type === "float32" ? compute() : to(withoutScalars(compute), type);
}

function record<A extends Attributes>(
  operator: Operator<A>,
  inputs: readonly Tensor[],
  attributes: A,
  scalars: readonly number[],
): Tensor {
  beforeRecording?.();
  const { shape, dtype } = operator.infer(inputs, attributes);
  if (inputs.length === 0)
    return new Tensor(shape, dtype, { kind: "recipe", operator, attributes, scalars, at: null }, false, null);
  // What a replay would change was changed before.
  if (operator.effect && isReplaying()) return inputs[0]!.detach();
  const nodes = inputs.map(nodeOf);
  const index = recording.graph.add({ op: operator.name, inputs: nodes, attributes, scalars, shape, dtype });
  if (operator.effect) recording.changed.add(nodes[0]!);
  else if (scalarsSurvive && sizeOf(shape) === 1) recording.survive(index, operator.isView ? nodes[0]! : null);
  const source: Source = { kind: "node", recording, index, storage: null };
  const differentiable =
    gradientsEnabled &&
    operator.backward !== undefined &&
    isFloating(dtype) &&
    inputs.some((input) => input.requiresGrad);
  const result = new Tensor(shape, dtype, source, differentiable, null);
  if (differentiable) {
    const again = noteCall(result, operator.name);
    result.gradFn = { operator, inputs, attributes, scalars, versions: inputs.map(versionOf), again };
  }
  return result;
}

/** The node of a tensor in the current recording. */
export function nodeOf(tensor: Tensor): number {
  noteUse(tensor);
  const { source, shape, dtype } = tensor;
  switch (source.kind) {
    case "storage":
      return recording.leaf(source.storage, shape, dtype);
    case "node": {
      if (source.recording === recording) return source.index;
      if (source.storage) return recording.leaf(source.storage, shape, dtype);
      const scalar = scalarOf(tensor);
      if (scalar) return recording.scalarLeaf(scalar, shape, dtype);
      throw new Error(
        `The tensor ${tensor} that ${source.recording.graph.nodes[source.index]!.op} made did not survive the flush. ` +
          "Before values are read or flush() is called, call keep() on it, or backward() if it is for gradients; or read its own value.",
      );
    }
    case "recipe": {
      if (source.at?.recording === recording) return source.at.index;
      const { operator, attributes, scalars } = source;
      const index = recording.graph.add({ op: operator.name, inputs: [], attributes, scalars, shape, dtype });
      source.at = { recording, index };
      return index;
    }
  }
}

/** The result of one element that a tensor is, where it has no memory but the ring's. */
export function scalarOf({ source }: Tensor): ScalarResult | null {
  return source.kind === "node" && !source.storage ? source.recording.scalar(source.index) : null;
}

/** Gives a tensor memory that outlives the flush, and returns it. */
export function storageOf(tensor: Tensor): Storage {
  const { source } = tensor;
  if (source.kind === "storage") return source.storage;
  if (source.kind === "node" && source.storage) return source.storage;
  const index = nodeOf(tensor);
  const storage = newStorage(tensor.numel, `a tensor of shape ${describeShape(tensor.shape)}`, tensor.dtype);
  recording.output(index, storage);
  if (source.kind === "node" && source.recording === recording) source.storage = storage;
  else tensor.source = { kind: "node", recording, index, storage };
  return storage;
}

/** How often the memory behind a tensor was changed in place. */
export function versionOf({ source }: Tensor): number {
  switch (source.kind) {
    case "storage":
      return source.storage.memory.version;
    case "node":
      return source.storage?.memory.version ?? 0;
    case "recipe":
      return 0;
  }
}

import { currentRecording, versionOf, withGradients, withoutScalars } from "./apply";
import { withRegion } from "./autocast";
import { add, ones, to } from "./functions";
import { afterHooks } from "./gradientHooks";
import { accumulate_, copy_ } from "./operators/inPlace";
import { describeShape, OperatorError, sameShape, sizeOf } from "./shape";
import { newStorage } from "./storage";
import { type GradientFunction, Tensor } from "./tensor";

/**
 * Adds the gradient of `root` with respect to each leaf that requires one into the leaf's `grad`, in place.
 * @param gradient the gradient of `root`, in its shape; 1 when `root` has one element.
 */
export function backward(root: Tensor, gradient?: Tensor): void {
  withGradients(false, () => {
    propagate([root], [gradient ?? seedOf(root, "backward")], (leaf, total) => {
      if (leaf.grad) accumulate_(leaf.grad, total);
      else {
        const what = `the gradient of a tensor of shape ${describeShape(leaf.shape)}`;
        const storage = newStorage(leaf.numel, what, leaf.dtype);
        leaf.grad = new Tensor(leaf.shape, leaf.dtype, { kind: "storage", storage }, false, null);
        copy_(leaf.grad, total);
      }
      for (const hook of accumulateHooks.get(leaf) ?? []) hook(leaf);
    });
  });
}

const accumulateHooks = new WeakMap<Tensor, Set<(leaf: Tensor) => void>>();

/**
 * Calls `hook` each time that `backward()` has recorded what is added to a leaf's `grad`, as torch's
 * Tensor.register_post_accumulate_grad_hook. Returns what removes it.
 */
export function registerPostAccumulateGradHook(leaf: Tensor, hook: (leaf: Tensor) => void): () => void {
  const hooks = accumulateHooks.get(leaf) ?? new Set();
  accumulateHooks.set(leaf, hooks.add(hook));
  return () => void hooks.delete(hook);
}

export interface GradOptions {
  /** The gradient of each output, in its shape; 1 where an output has one element. */
  readonly gradOutputs?: readonly Tensor[];
  /** Whether the result can be differentiated in turn. */
  readonly createGraph?: boolean;
}

/**
 * The gradients of the sum of `outputs` with respect to `inputs`, without touching anyone's `grad`. An input that the
 * outputs don't depend on has null.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  { gradOutputs, createGraph = false }: GradOptions = {},
): (Tensor | null)[] {
  const roots = outputs instanceof Tensor ? [outputs] : outputs;
  const wanted = inputs instanceof Tensor ? [inputs] : inputs;
  return withGradients(createGraph, () => {
    const seeds = roots.map((root, i) => gradOutputs?.[i] ?? seedOf(root, "grad"));
    const totals = propagate(roots, seeds, () => {}, new Set(wanted));
    return wanted.map((input) => surviving(totals.get(input) ?? null));
  });
}

/** What a pass computes on the way is seen by nobody, but its results may be of one element, as those of any operator. */
function surviving(result: Tensor | null): Tensor | null {
  if (result?.source.kind === "node" && result.numel === 1) currentRecording().survive(result.source.index);
  return result;
}

function seedOf(root: Tensor, operator: string): Tensor {
  if (sizeOf(root.shape) !== 1)
    throw new OperatorError(
      operator,
      `the output has shape ${describeShape(root.shape)}; expected one element, or a gradient of that shape`,
    );
  return ones(root.shape, { dtype: root.dtype });
}

/** Walks from the roots down in reverse order of creation, so that a tensor's gradient is complete when it is used. */
function propagate(
  roots: readonly Tensor[],
  seeds: readonly Tensor[],
  atLeaf: (leaf: Tensor, total: Tensor) => void,
  wanted: ReadonlySet<Tensor> = new Set(),
): Map<Tensor, Tensor> {
  const totals = new Map<Tensor, Tensor>();
  const results = new Map<Tensor, Tensor>();
  for (const [i, root] of roots.entries()) {
    const seed = seeds[i]!;
    if (!root.requiresGrad)
      throw new OperatorError("backward", `the output ${root} does not depend on a tensor that requires a gradient`);
    if (!sameShape(seed.shape, root.shape))
      throw new OperatorError(
        "backward",
        `the gradient has shape ${describeShape(seed.shape)}; expected the output's, ${describeShape(root.shape)}`,
      );
    addInto(totals, root, seed);
  }
  const order = reachable(roots);
  const uses = leafUses(order);
  const complete = (tensor: Tensor): void => {
    const sum = totals.get(tensor);
    if (!sum) return;
    totals.delete(tensor);
    const total = afterHooks(tensor, sum);
    if (wanted.has(tensor)) results.set(tensor, total);
    if (tensor.gradFn) propagateThrough(tensor, tensor.gradFn, total, totals);
    else atLeaf(tensor, total);
  };
  for (const tensor of order) {
    complete(tensor);
    // A leaf's gradient is passed on once its last use was differentiated, so that it can be sent while others are computed.
    for (const input of tensor.gradFn?.inputs ?? []) {
      const left = uses.get(input);
      if (left === undefined) continue;
      uses.set(input, left - 1);
      if (left === 1) complete(input);
    }
  }
  return results;
}

/** Adds to its inputs' gradients what follows from a tensor's own. */
function propagateThrough(
  tensor: Tensor,
  { operator, inputs, attributes, scalars, versions, again }: GradientFunction,
  total: Tensor,
  totals: Map<Tensor, Tensor>,
): void {
  for (const [i, input] of inputs.entries())
    if (versionOf(input) !== versions[i])
      throw new OperatorError(
        operator.name,
        `its input ${i}, ${input}, was changed in place after it was used, so its gradient can't be computed. ` +
          "Call backward() before parameters are updated",
      );
  const needs = inputs.map((input) => input.requiresGrad);
  const output = again ? withoutScalars(again) : tensor;
  const operands = again ? output.gradFn!.inputs : inputs;
  const context = { inputs: operands, output, gradient: total, attributes, scalars, needs };
  const gradients = withRegion(null, () => withoutScalars(() => operator.backward!(context)));
  for (const [i, input] of inputs.entries()) {
    const gradient = gradients[i];
    if (gradient && input.requiresGrad)
      addInto(
        totals,
        input,
        withoutScalars(() => to(gradient, input.dtype)),
      );
  }
}

/** How often each leaf that requires a gradient is an input. */
function leafUses(tensors: readonly Tensor[]): Map<Tensor, number> {
  const uses = new Map<Tensor, number>();
  for (const { gradFn } of tensors)
    for (const input of gradFn?.inputs ?? [])
      if (input.requiresGrad && input.isLeaf) uses.set(input, (uses.get(input) ?? 0) + 1);
  return uses;
}

function addInto(totals: Map<Tensor, Tensor>, tensor: Tensor, gradient: Tensor): void {
  const before = totals.get(tensor);
  totals.set(tensor, before ? withoutScalars(() => add(before, gradient)) : gradient);
}

/** Every tensor that requires a gradient and that the roots were made from, latest first. */
function reachable(roots: readonly Tensor[]): Tensor[] {
  const seen = new Set<Tensor>(roots);
  for (const tensor of seen) for (const input of tensor.gradFn?.inputs ?? []) if (input.requiresGrad) seen.add(input);
  return [...seen].sort((a, b) => b.order - a.order);
}

import { registerHook, squeeze, type Tensor, unsqueeze } from "../tensor/index";
import type { Module } from "./module";

export type ForwardPreHook = (module: Module, inputs: Tensor[]) => Tensor[] | undefined;
export type ForwardHook = (module: Module, inputs: Tensor[], output: Tensor) => Tensor | undefined;
export type BackwardPreHook = (module: Module, gradOutput: Tensor) => Tensor | undefined;
export type BackwardHook = (
  module: Module,
  gradInputs: readonly (Tensor | null)[],
  gradOutput: Tensor,
) => readonly (Tensor | null)[] | undefined;

interface Hooks {
  readonly before: Set<ForwardPreHook>;
  readonly after: Set<ForwardHook>;
  readonly beforeBackward: Set<BackwardPreHook>;
  readonly afterBackward: Set<BackwardHook>;
}

const hooks = new WeakMap<Module, Hooks>();

/** A module's hooks; the first call puts a `forward` that runs them in front of the module's own. */
export function hooksOf(module: Module): Hooks {
  const known = hooks.get(module);
  if (known) return known;
  const made: Hooks = { before: new Set(), after: new Set(), beforeBackward: new Set(), afterBackward: new Set() };
  hooks.set(module, made);
  const forward = module.forward.bind(module);
  const value = (...given: Tensor[]): Tensor => {
    let inputs = given;
    for (const hook of made.before) inputs = hook(module, inputs) ?? inputs;
    const watch = made.beforeBackward.size + made.afterBackward.size > 0 ? new BackwardWatch(module, made) : null;
    if (watch) inputs = watch.inputs(inputs);
    let output = forward(...inputs);
    if (watch) output = watch.output(output);
    for (const hook of made.after) output = hook(module, inputs, output) ?? output;
    return output;
  };
  Object.defineProperty(module, "forward", { value, enumerable: false });
  return made;
}

export function added<Hook>(to: Set<Hook>, hook: Hook): () => void {
  to.add(hook);
  return () => void to.delete(hook);
}

/** The same values as a tensor of its own, so that gradients from elsewhere don't mix with those from here. */
const aliasOf = (tensor: Tensor): Tensor => squeeze(unsqueeze(tensor, 0), 0);

/** One call of a module whose backward pass is watched. */
class BackwardWatch {
  readonly #gradients: (Tensor | null)[] = [];
  #awaited = 0;
  #gradOutput: Tensor | null = null;

  constructor(
    readonly module: Module,
    readonly hooks: Hooks,
  ) {}

  inputs(inputs: readonly Tensor[]): Tensor[] {
    this.#awaited = inputs.filter(({ requiresGrad }) => requiresGrad).length;
    return inputs.map((input, index) => {
      this.#gradients[index] = null;
      if (!input.requiresGrad) return input;
      const alias = aliasOf(input);
      if (alias.requiresGrad) registerHook(alias, (gradient) => this.#arrived(index, gradient));
      return alias;
    });
  }

  output(output: Tensor): Tensor {
    if (!output.requiresGrad) return output;
    const alias = aliasOf(output);
    registerHook(alias, (gradient) => {
      let current = gradient;
      for (const hook of this.hooks.beforeBackward) current = hook(this.module, current) ?? current;
      this.#gradOutput = current;
      // Where no input has a gradient, there is nothing else to wait for.
      if (this.#awaited === 0) this.#run();
      return current;
    });
    return alias;
  }

  #arrived(index: number, gradient: Tensor): Tensor | undefined {
    this.#gradients[index] = gradient;
    const isLast = this.#gradients.filter((known) => known !== null).length === this.#awaited;
    if (!isLast) return undefined;
    const result = this.#run()?.[index] ?? undefined;
    this.#gradients.fill(null);
    return result;
  }

  #run(): readonly (Tensor | null)[] | undefined {
    let gradients: readonly (Tensor | null)[] = this.#gradients;
    let isReplaced = false;
    for (const hook of this.hooks.afterBackward) {
      if (!this.#gradOutput) continue;
      const replaced = hook(this.module, [...gradients], this.#gradOutput);
      if (!replaced) continue;
      if (this.#awaited !== 1)
        throw new Error(
          `A backward hook of ${this.module.constructor.name} returned other gradients, but ${this.#awaited} inputs have one; ` +
            "expected undefined where it isn't one input.",
        );
      gradients = replaced;
      isReplaced = true;
    }
    return isReplaced ? gradients : undefined;
  }
}

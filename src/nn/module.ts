import { fromBrain, fromHalf } from "../base/float16";
import { changeDtype_, copy_, noGrad, observed, Tensor, zeroGradients } from "../tensor/index";
import {
  added,
  type BackwardHook,
  type BackwardPreHook,
  type ForwardHook,
  type ForwardPreHook,
  hooksOf,
} from "./hooks";

const parameters = new WeakSet<Tensor>();

/**
 * Marks a tensor as a module's parameter: it requires a gradient, and optimizers and `parameters()` see it. A module's
 * other tensors are buffers, which belong to its state but aren't trained.
 */
export function parameter(tensor: Tensor): Tensor {
  parameters.add(tensor);
  tensor.requiresGrad = true;
  return tensor;
}

/** A tensor's value as it comes from a file or another machine, in row-major order. */
export interface TensorValue {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number> | BigInt64Array | BigUint64Array;
  /** Where it is F16 or BF16, as in a safetensors file, the data are the bits of such numbers. */
  readonly dtype?: string;
}

export interface LoadOptions {
  /** Whether every key must be there on both sides. Default: true. */
  readonly strict?: boolean;
}

export interface LoadResult {
  /** Keys of the module that the state lacks. */
  readonly missing: readonly string[];
  /** Keys of the state that the module lacks. */
  readonly unexpected: readonly string[];
}

/**
 * A part of a model, as torch.nn.Module. A subclass keeps parameters, buffers and child modules as its own properties
 * (not as #private ones) and computes in `forward`. Names in the state dict are the properties' names in PyTorch's
 * spelling: `runningMean` is `running_mean`.
 */
export abstract class Module {
  /** Whether layers such as batch norm behave as in training. */
  get training(): boolean {
    return observed(`whether ${this.constructor.name} is in training`, () => this.#training);
  }

  set training(training: boolean) {
    this.#training = training;
  }

  #training = true;

  /** Computes the module's output. PyTorch's `module(x)` is `module.forward(x)`. */
  abstract forward(...inputs: Tensor[]): Tensor;

  /** Direct child modules by name, in the order they were set. */
  namedChildren(): [name: string, child: Module][] {
    return Object.entries(this).flatMap(([property, value]): [string, Module][] =>
      value instanceof Module ? [[stateName(property), value]] : [],
    );
  }

  children(): Module[] {
    return this.namedChildren().map(([, child]) => child);
  }

  /** This module, named "", and all below it, each once. */
  namedModules(): [name: string, module: Module][] {
    const seen = new Set<Module>();
    const walk = (module: Module, prefix: string): [string, Module][] => {
      if (seen.has(module)) return [];
      seen.add(module);
      const below = module.namedChildren().flatMap(([name, child]) => walk(child, joined(prefix, name)));
      return [[prefix, module], ...below];
    };
    return walk(this, "");
  }

  modules(): Module[] {
    return this.namedModules().map(([, module]) => module);
  }

  /** Parameters of this module and all below it; one that is used twice comes once, by its first name. */
  namedParameters(): [name: string, parameter: Tensor][] {
    return firstNames(this.#namedTensors().filter(([, tensor]) => parameters.has(tensor)));
  }

  parameters(): Tensor[] {
    return this.namedParameters().map(([, tensor]) => tensor);
  }

  namedBuffers(): [name: string, buffer: Tensor][] {
    return firstNames(this.#namedTensors().filter(([, tensor]) => !parameters.has(tensor)));
  }

  buffers(): Tensor[] {
    return this.namedBuffers().map(([, tensor]) => tensor);
  }

  /** All parameters and buffers by name: the tensors themselves, not copies. */
  stateDict(): Map<string, Tensor> {
    return new Map(this.#namedTensors());
  }

  /**
   * Overwrites parameters and buffers, which stay the same tensors.
   * @throws Error naming the keys that are missing, unexpected (where `strict`) or of another shape; nothing is
   * changed then.
   */
  loadStateDict(
    state: Iterable<readonly [name: string, value: Tensor | TensorValue]>,
    { strict = true }: LoadOptions = {},
  ): LoadResult {
    const own = this.stateDict();
    const given = new Map(state);
    const missing = [...own.keys()].filter((name) => !given.has(name));
    const unexpected = [...given.keys()].filter((name) => !own.has(name));
    const problems = strict
      ? [...missing.map((name) => `${name} is missing`), ...unexpected.map((name) => `${name} is unexpected`)]
      : [];
    for (const [name, value] of given) {
      const target = own.get(name);
      if (target && target.shape.join() !== value.shape.join())
        problems.push(`${name} has the shape [${value.shape.join(", ")}] instead of [${target.shape.join(", ")}]`);
    }
    if (problems.length > 0) throw new Error(`The state doesn't fit ${this.constructor.name}: ${problems.join("; ")}.`);
    for (const [name, value] of given) {
      const target = own.get(name);
      if (target) assign(target, value);
    }
    return { missing, unexpected };
  }

  /** Sets training mode, or evaluation mode, here and below. */
  train(training = true): this {
    for (const module of this.modules()) module.training = training;
    return this;
  }

  /** Sets evaluation mode here and below. */
  eval(): this {
    return this.train(false);
  }

  /** Calls `change` with each module, children before parents. */
  apply(change: (module: Module) => void): this {
    for (const module of this.modules().reverse()) change(module);
    return this;
  }

  /** Switches gradients of all parameters on or off, to freeze a part of a model. */
  requiresGrad_(requiresGrad = true): this {
    for (const tensor of this.parameters()) tensor.requiresGrad = requiresGrad;
    return this;
  }

  /** Sets the gradients of all parameters to zero. */
  zeroGrad(): void {
    zeroGradients(this.parameters());
  }

  /**
   * Calls `hook` before each `forward`, with the inputs; what it returns, if anything, takes their place.
   * @returns what takes the hook away.
   */
  registerForwardPreHook(hook: ForwardPreHook): () => void {
    return added(hooksOf(this).before, hook);
  }

  /**
   * Calls `hook` after each `forward`, with the inputs and the output; what it returns, if anything, takes the output's
   * place.
   * @returns what takes the hook away.
   */
  registerForwardHook(hook: ForwardHook): () => void {
    return added(hooksOf(this).after, hook);
  }

  /**
   * Calls `hook` with the gradient of the output in each backward pass; what it returns, if anything, takes its place.
   * @returns what takes the hook away.
   */
  registerFullBackwardPreHook(hook: BackwardPreHook): () => void {
    return added(hooksOf(this).beforeBackward, hook);
  }

  /**
   * Calls `hook` when the gradients of the inputs are there, with them (null: an input without) and that of the output.
   * What it returns, if anything, takes their place, which only a module with one such input allows.
   * @returns what takes the hook away.
   */
  registerFullBackwardHook(hook: BackwardHook): () => void {
    return added(hooksOf(this).afterBackward, hook);
  }

  /**
   * Converts all parameters and buffers of floats to a type, in place: they stay the same tensors, without gradients.
   * Optimizers take float32; `autocast` computes in halves and leaves parameters as they are.
   */
  to(dtype: "float32" | "float16" | "bfloat16"): this {
    for (const [, tensor] of this.#namedTensors())
      if (tensor.dtype !== "int32" && tensor.dtype !== "bool") changeDtype_(tensor, dtype);
    return this;
  }

  /** The module's own parameters and buffers by name: its properties, unless a subclass keeps them elsewhere. */
  protected ownTensors(): [name: string, tensor: Tensor][] {
    return Object.entries(this).flatMap(([property, value]): [string, Tensor][] =>
      value instanceof Tensor ? [[stateName(property), value]] : [],
    );
  }

  #namedTensors(): [string, Tensor][] {
    return this.namedModules().flatMap(([prefix, module]) =>
      module.ownTensors().map(([name, value]): [string, Tensor] => [joined(prefix, name), value]),
    );
  }
}

const joined = (prefix: string, name: string) => (prefix === "" ? name : `${prefix}.${name}`);

/** PyTorch's spelling of a property: runningMean is running_mean. */
const stateName = (property: string) => property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function firstNames(named: [string, Tensor][]): [string, Tensor][] {
  const seen = new Set<Tensor>();
  return named.filter(([, tensor]) => !seen.has(tensor) && seen.add(tensor));
}

function assign(target: Tensor, value: Tensor | TensorValue): void {
  if (value instanceof Tensor) return void noGrad(() => copy_(target, value));
  const { data, dtype } = value;
  const fromBits = dtype === "F16" ? fromHalf : dtype === "BF16" ? fromBrain : Number;
  const number = (item: number | bigint) => fromBits(Number(item));
  target.write(target.dtype === "int32" ? Int32Array.from(data, number) : Float32Array.from(data, number));
}

/**
 * A class of modules with these arguments of its constructor and of `forward`. Functions that make classes name it as
 * their result, since TypeScript declares no anonymous class with private members.
 */
export type ModuleClass<Arguments extends unknown[], Inputs extends Tensor[], Own = unknown> = new (
  ...args: Arguments
) => Module & Own & { forward(...inputs: Inputs): Tensor };

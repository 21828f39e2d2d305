import type { Tensor } from "../tensor/index";
import { Module, parameter } from "./module";

/** A list of modules that are part of a model; their names are their indices. */
export class ModuleList extends Module {
  readonly items: readonly Module[];

  constructor(items: Iterable<Module>) {
    super();
    this.items = [...items];
  }

  override namedChildren(): [string, Module][] {
    return this.items.map((item, index) => [String(index), item]);
  }

  forward(): Tensor {
    throw new Error("A ModuleList only holds modules; call forward on its items, or use a Sequential.");
  }
}

/** Modules one after the other, each taking the output of the one before; named by their indices. */
export class Sequential extends Module {
  readonly layers: readonly Module[];

  constructor(...layers: Module[]) {
    super();
    this.layers = layers;
  }

  override namedChildren(): [string, Module][] {
    return this.layers.map((layer, index) => [String(index), layer]);
  }

  forward(input: Tensor): Tensor {
    return this.layers.reduce((value, layer) => layer.forward(value), input);
  }
}

/** Modules by name that are part of a model. */
export class ModuleDict extends Module {
  readonly items: ReadonlyMap<string, Module>;

  constructor(items: Iterable<readonly [string, Module]> | Readonly<Record<string, Module>>) {
    super();
    this.items = new Map(Symbol.iterator in items ? items : Object.entries(items));
  }

  /** @throws Error naming the modules that there are. */
  get(name: string): Module {
    const item = this.items.get(name);
    if (!item) throw new Error(`The ModuleDict has no ${name}; it has ${[...this.items.keys()].join(", ")}.`);
    return item;
  }

  override namedChildren(): [string, Module][] {
    return [...this.items];
  }

  forward(): Tensor {
    throw new Error("A ModuleDict only holds modules; call forward on its items.");
  }
}

/** Parameters that are part of a model; their names are their indices. */
export class ParameterList extends Module {
  readonly items: readonly Tensor[];

  constructor(items: Iterable<Tensor>) {
    super();
    this.items = [...items].map(parameter);
  }

  protected override ownTensors(): [string, Tensor][] {
    return this.items.map((item, index) => [String(index), item]);
  }

  forward(): Tensor {
    throw new Error("A ParameterList only holds parameters.");
  }
}

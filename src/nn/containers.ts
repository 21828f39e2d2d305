import type { Tensor } from "../tensor/index";
import { Module } from "./module";

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

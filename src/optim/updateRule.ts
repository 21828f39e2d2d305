import { adamaxRule, adamRule, nadamRule, radamRule } from "./rules/adam";
import { adadeltaRule, adagradRule, rmspropRule } from "./rules/adaptive";
import { lionRule } from "./rules/lion";
import type { UpdateRule } from "./rules/rule";
import { sgdRule } from "./rules/sgd";
import type { OptimizerSpec } from "./spec";

export function updateRule(spec: OptimizerSpec): UpdateRule {
  switch (spec.name) {
    case "sgd":
      return sgdRule(spec);
    case "adam":
    case "adamw":
      return adamRule(spec);
    case "nadam":
      return nadamRule(spec);
    case "radam":
      return radamRule(spec);
    case "adamax":
      return adamaxRule(spec);
    case "adagrad":
      return adagradRule(spec);
    case "adadelta":
      return adadeltaRule(spec);
    case "rmsprop":
      return rmspropRule(spec);
    case "lion":
      return lionRule(spec);
  }
}

/** One array of an optimizer's state: its name and its length in float32 values. */
export interface StateArray {
  readonly name: string;
  readonly length: number;
}

/** The arrays of state for `length` weights, which every implementation keeps in this order. */
export function stateLayout(spec: OptimizerSpec, length: number): StateArray[] {
  return updateRule(spec).state.map((name) => ({ name, length }));
}

/** @throws Error naming the arrays that the optimizer has if these are others, or the steps if they are no count. */
export function checkState(
  name: string,
  layout: readonly StateArray[],
  state: readonly Float32Array[],
  steps: number,
): void {
  const fits = layout.every((array, index) => state[index]?.length === array.length) && state.length === layout.length;
  if (!fits) {
    const expected = layout.map(({ name, length }) => `${name} [${length}]`).join(", ");
    const got = state.map((array) => `[${array.length}]`).join(", ");
    throw new Error(
      `The state of ${name} is ${expected || "empty"}; the given arrays have the lengths ${got || "of none"}.`,
    );
  }
  if (!Number.isSafeInteger(steps) || steps < 0)
    throw new Error(`The steps that ${name} has taken must be a count; they are ${steps}.`);
}

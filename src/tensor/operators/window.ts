import { OperatorError } from "../shape";

/** What a window has in both directions: [vertical, horizontal]. */
export type Pair = readonly [number, number];

/** An argument that may be one number for both directions; integers of at least `least`. */
export function pairOf(operator: string, what: string, value: number | readonly number[], least: number): Pair {
  const [vertical, horizontal] = typeof value === "number" ? [value] : value;
  const isPair = typeof value === "number" || value.length === 1 || value.length === 2;
  const pair = [vertical ?? Number.NaN, horizontal ?? vertical ?? Number.NaN] as const;
  if (!isPair || pair.some((part) => !Number.isInteger(part) || part < least))
    throw new OperatorError(
      operator,
      `${what} is ${typeof value === "number" ? value : `[${value.join(", ")}]`}; expected an integer of at least ${least}, or two`,
    );
  return pair;
}

/** An argument in one direction that may come in a list of one. */
export function single(operator: string, what: string, value: number | readonly number[]): number {
  const [number, ...more] = typeof value === "number" ? [value] : value;
  if (number === undefined || more.length > 0)
    throw new OperatorError(operator, `${what} is ${JSON.stringify(value)}; expected one number`);
  return number;
}

/** How many windows of `extent` fit into `length` at steps of `stride`. */
export function windowCount(operator: string, length: number, extent: number, stride: number): number {
  const count = Math.floor((length - extent) / stride) + 1;
  if (count < 1)
    throw new OperatorError(
      operator,
      `the window spans ${extent} of a padded input of ${length}; expected an input at least as large as the window`,
    );
  return count;
}

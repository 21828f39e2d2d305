import { Tensor } from "../tensor";
import { maximum, minimum } from "./elementwise";
import { amax, amin, maxOver, minOver } from "./reduction";
import type { Sorted } from "./sorting";

/** The largest of all elements; those equal to it share its gradient. */
export function max(input: Tensor): Tensor;
/** The largest element along a dimension, with its index (the first), which alone gets the gradient. */
export function max(input: Tensor, dim: number, keepdim?: boolean): Sorted;
/** The larger of two tensors' elements. */
export function max(input: Tensor, other: Tensor): Tensor;
export function max(input: Tensor, dim?: number | Tensor, keepdim = false): Tensor | Sorted {
  if (dim === undefined) return amax(input);
  return dim instanceof Tensor ? maximum(input, dim) : maxOver(input, dim, keepdim);
}

/** The smallest of all elements; those equal to it share its gradient. */
export function min(input: Tensor): Tensor;
/** The smallest element along a dimension, with its index (the first), which alone gets the gradient. */
export function min(input: Tensor, dim: number, keepdim?: boolean): Sorted;
/** The smaller of two tensors' elements. */
export function min(input: Tensor, other: Tensor): Tensor;
export function min(input: Tensor, dim?: number | Tensor, keepdim = false): Tensor | Sorted {
  if (dim === undefined) return amin(input);
  return dim instanceof Tensor ? minimum(input, dim) : minOver(input, dim, keepdim);
}

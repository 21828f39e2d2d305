import { apply } from "../apply";
import { type DType, isFloating } from "../dtype";
import { normalizeDim, normalizeDims } from "../shape";
import type { Tensor } from "../tensor";
import { full } from "./creation";
import { productOfOthers } from "./cumulative";
import { eq, isnan, mul, ne, sqrt, to, where } from "./elementwise";
import { amax, amin, type Dims, mean, reductionRow, sum, type VarianceOptions, variance } from "./reduction";
import type { Operator } from "./table";
import { reshape } from "./views";

const prodRow = reductionRow(
  {
    name: "prod",
    start: "var total = TYPE(1);",
    combine: "total *= x;",
    finish: "total",
    needsElements: false,
    result: null,
  },
  ({ inputs: [input], gradient, attributes: { dims } }) => [mul(gradient, productOfOthers(input!, dims[0]!))],
);

export const statistics: readonly Operator[] = [prodRow];

/** The product along `dim`, or of all elements. Integers stay integers. */
export function prod(input: Tensor, dim: number | null = null, keepdim = false, dtype: DType | null = null): Tensor {
  const values = to(input, dtype ?? (input.dtype === "bool" ? "int32" : input.dtype));
  if (dim === null) return reshape(apply(prodRow, [reshape(values, [values.numel])], { dims: [0] }), []);
  const d = normalizeDim("prod", dim, input.ndim);
  if (input.ndim === 0) return prod(values);
  const product = apply(prodRow, [values], { dims: [d] });
  return keepdim ? product : reshape(product, input.shape.toSpliced(d, 1));
}

/** Whether any element along `dim` isn't 0 (false for none). */
export const any = (input: Tensor, dim: Dims = null, keepdim = false): Tensor =>
  ofBooleans("any", input, dim, keepdim, amax, 0);
/** Whether all elements along `dim` aren't 0 (true for none). */
export const all = (input: Tensor, dim: Dims = null, keepdim = false): Tensor =>
  ofBooleans("all", input, dim, keepdim, amin, 1);

function ofBooleans(name: string, input: Tensor, dim: Dims, keepdim: boolean, of: typeof amax, ofNone: number): Tensor {
  const dims = normalizeDims(name, dim, input.ndim);
  if (input.numel > 0) return of(to(input, "bool"), dims, keepdim);
  const shape = input.shape.flatMap((size, d) => (!dims.includes(d) ? [size] : keepdim ? [1] : []));
  return full(shape, ofNone, { dtype: "bool" });
}

/** How many elements over `dim` aren't 0 (int32). */
export const countNonzero = (input: Tensor, dim: Dims = null): Tensor => sum(to(ne(input, 0), "int32"), dim);

/** The sum over `dim`, with NaN as 0. */
export const nansum = (input: Tensor, dim: Dims = null, keepdim = false): Tensor =>
  sum(isFloating(input.dtype) ? where(isnan(input), 0, input) : input, dim, keepdim);

/** The standard deviation over `dim`. Where it is 0, so is its gradient. */
export function std(input: Tensor, dim: Dims = null, options: VarianceOptions = {}): Tensor {
  return rootOf(variance(input, dim, options));
}

/** The square root, with the gradient 0 at 0. */
export function rootOf(squares: Tensor): Tensor {
  const isZero = eq(squares, 0);
  return where(isZero, 0, sqrt(where(isZero, 1, squares)));
}

export interface WithMean {
  readonly mean: Tensor;
}

/** The standard deviation and the mean over `dim`. */
export const stdMean = (
  input: Tensor,
  dim: Dims = null,
  options: VarianceOptions = {},
): WithMean & { std: Tensor } => ({
  std: std(input, dim, options),
  mean: mean(input, dim, options.keepdim),
});
/** The variance and the mean over `dim`. */
export const varMean = (
  input: Tensor,
  dim: Dims = null,
  options: VarianceOptions = {},
): WithMean & { var: Tensor } => ({
  var: variance(input, dim, options),
  mean: mean(input, dim, options.keepdim),
});

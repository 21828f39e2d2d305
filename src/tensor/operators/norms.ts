import { autocasting } from "../autocast";
import { describeShape, normalizeDims, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { abs, div, eq, mul, pow, sign, sub, to, where } from "./elementwise";
import { matmul } from "./matrix";
import { amax, amin, type Dims, sum } from "./reduction";
import { rootOf } from "./statistics";
import { transpose } from "./views";

/**
 * The norm of vectors along `dim` (of all elements by default): (sum |x|^ord)^(1/ord), the largest or smallest |x| for
 * infinite orders, and the number of elements that aren't 0 for order 0.
 */
export const vectorNorm = autocasting(
  "vectorNorm",
  (input: Tensor, ord = 2, dim: Dims = null, keepdim = false): Tensor => {
    const x = to(input, "float32");
    const dims = normalizeDims("vectorNorm", dim, x.ndim);
    if (ord === Infinity) return amax(abs(x), dims, keepdim);
    if (ord === -Infinity) return amin(abs(x), dims, keepdim);
    if (ord === 0) return sum(abs(sign(x)), dims, keepdim);
    if (ord === 1) return sum(abs(x), dims, keepdim);
    if (ord === 2) return rootOf(sum(mul(x, x), dims, keepdim));
    return rootOfPowers(sum(powerOfMagnitude(x, ord), dims, keepdim), ord);
  },
);

/** |x|^ord, with the gradient 0 at 0. */
function powerOfMagnitude(x: Tensor, ord: number): Tensor {
  const isZero = eq(x, 0);
  return where(isZero, ord < 0 ? Infinity : 0, pow(abs(where(isZero, 1, x)), ord));
}

/** total^(1 / ord), with the gradient 0 where the norm is 0. */
function rootOfPowers(total: Tensor, ord: number): Tensor {
  const isZero = eq(total, ord < 0 ? Infinity : 0);
  return where(isZero, 0, pow(where(isZero, 1, total), 1 / ord));
}

/**
 * PyTorch's norm. @param p the order of the vector norm, "fro" for order 2 over the elements, or "nuc": the sum of a
 * matrix's singular values.
 */
export const norm = autocasting(
  "norm",
  (input: Tensor, p: number | "fro" | "nuc" = "fro", dim: Dims = null, keepdim = false): Tensor => {
    if (p !== "nuc") return vectorNorm(input, p === "fro" ? 2 : p, dim, keepdim);
    return nuclearNorm(input, dim, keepdim);
  },
);

function nuclearNorm(input: Tensor, dim: Dims, keepdim: boolean): Tensor {
  const dims = dim === null ? [input.ndim - 2, input.ndim - 1] : typeof dim === "number" ? [dim] : dim;
  if (input.ndim < 2 || dims.length !== 2 || (dim === null && input.ndim !== 2))
    throw new OperatorError(
      "norm",
      `the nuclear norm of a tensor of shape ${describeShape(input.shape)} over dim ${dim === null ? "null" : `[${dims}]`}; expected a matrix, or two dimensions`,
    );
  const normalized = normalizeDims("norm", dims, input.ndim);
  let x = to(input, "float32");
  // The two dimensions at the end.
  x = transpose(transpose(x, normalized[1]!, -1), normalized[0]!, -2);
  const result = sum(mul(x, polarFactor(x.detach())), [-2, -1], true);
  const back = transpose(transpose(result, normalized[0]!, -2), normalized[1]!, -1);
  return keepdim ? back : sum(back, normalized);
}

const newtonSteps = 36;

/**
 * U V^T of the singular value decomposition U S V^T, by Newton and Schulz's iteration x <- 1.5 x - 0.5 x x^T x from
 * x / |x|, which takes singular values to 1; those below 1e-5 of the norm stay behind, and with them what they add.
 */
function polarFactor(matrix: Tensor): Tensor {
  const size = rootOf(sum(mul(matrix, matrix), [-2, -1], true));
  let x = div(matrix, where(eq(size, 0), 1, size));
  const isWide = x.shape.at(-2)! < x.shape.at(-1)!;
  for (let step = 0; step < newtonSteps; step++) {
    const xt = transpose(x, -1, -2);
    const cubed = isWide ? matmul(matmul(x, xt), x) : matmul(x, matmul(xt, x));
    x = sub(mul(x, 1.5), mul(cubed, 0.5));
  }
  return x;
}

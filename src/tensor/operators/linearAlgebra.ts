import { autocasting } from "../autocast";
import { describeShape, normalizeDim, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { add, mul } from "./elementwise";
import { bmm, matmul, mm, mv } from "./matrix";
import { floating } from "./promotion";
import { permute, reshape, unsqueeze } from "./views";

/** Factors of a sum of `input` and a product: beta * input + alpha * product. */
export interface Factors {
  /** 0: the input isn't looked at, even if it holds NaN. */
  readonly beta?: number;
  readonly alpha?: number;
}

function combine(input: Tensor, product: Tensor, { beta = 1, alpha = 1 }: Factors): Tensor {
  const scaled = alpha === 1 ? product : mul(product, alpha);
  if (beta === 0) return scaled;
  return add(beta === 1 ? input : mul(input, beta), scaled);
}

/** beta * input + alpha * mat1 @ mat2. */
export const addmm = autocasting(
  "addmm",
  (input: Tensor, mat1: Tensor, mat2: Tensor, factors: Factors = {}): Tensor => combine(input, mm(mat1, mat2), factors),
);

/** beta * input + alpha * mat @ vec. */
export const addmv = autocasting(
  "addmv",
  (input: Tensor, mat: Tensor, vec: Tensor, factors: Factors = {}): Tensor => combine(input, mv(mat, vec), factors),
);

/** beta * input + alpha * batch1 @ batch2, for each of a batch of matrices. */
export const baddbmm = autocasting(
  "baddbmm",
  (input: Tensor, batch1: Tensor, batch2: Tensor, factors: Factors = {}): Tensor =>
    combine(input, bmm(batch1, batch2), factors),
);

/** beta * input + alpha * the sum over the batch of batch1 @ batch2. */
export const addbmm = autocasting(
  "addbmm",
  (input: Tensor, batch1: Tensor, batch2: Tensor, factors: Factors = {}): Tensor => {
    if (batch1.ndim !== 3 || batch2.ndim !== 3 || batch1.shape[0] !== batch2.shape[0])
      throw new OperatorError(
        "addbmm",
        `got batches of shapes ${describeShape(batch1.shape)} and ${describeShape(batch2.shape)}; expected [B, M, K] and [B, K, N]`,
      );
    // One product over batch and inner dimension together.
    return combine(
      input,
      tensordot(batch1, batch2, [
        [0, 2],
        [0, 1],
      ]),
      factors,
    );
  },
);

/** Products over the last dimension of both. */
export function inner(input: Tensor, other: Tensor): Tensor {
  if (input.ndim === 0 || other.ndim === 0) return mul(input, other);
  return tensordot(input, other, [[-1], [-1]]);
}

/** Every product of an element of one vector and one of another: [N], [M] to [N, M]. */
export function outer(input: Tensor, vec2: Tensor): Tensor {
  if (input.ndim !== 1 || vec2.ndim !== 1)
    throw new OperatorError(
      "outer",
      `got shapes ${describeShape(input.shape)} and ${describeShape(vec2.shape)}; expected two vectors`,
    );
  return mul(unsqueeze(input, 1), vec2);
}

/**
 * Sums of products over pairs of dimensions; the others remain, the first's before the second's.
 * @param dims the pairs: a list for each tensor, or how many, the first's last with the second's first.
 */
export function tensordot(
  a: Tensor,
  b: Tensor,
  dims: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  const count = (n: number, from: number) => Array.from({ length: n }, (_, i) => from + i);
  const [dimsA, dimsB] = typeof dims === "number" ? [count(dims, a.ndim - dims), count(dims, 0)] : dims;
  const [overA, overB] = [
    dimsA.map((dim) => normalizeDim("tensordot", dim, a.ndim)),
    dimsB.map((dim) => normalizeDim("tensordot", dim, b.ndim)),
  ];
  if (overA.length !== overB.length || overA.some((d, i) => a.shape[d] !== b.shape[overB[i]!]))
    throw new OperatorError(
      "tensordot",
      `got shapes ${describeShape(a.shape)} and ${describeShape(b.shape)} and dims [${overA}] and [${overB}]; expected pairs of dimensions of equal size`,
    );
  const restA = a.shape.flatMap((_, d) => (overA.includes(d) ? [] : [d]));
  const restB = b.shape.flatMap((_, d) => (overB.includes(d) ? [] : [d]));
  const sizes = (of: Tensor, list: readonly number[]) => list.map((d) => of.shape[d]!);
  const product = (list: readonly number[]) => list.reduce((total, size) => total * size, 1);
  const k = product(sizes(a, overA));
  const left = reshape(permute(floating(a), [...restA, ...overA]), [product(sizes(a, restA)), k]);
  const right = reshape(permute(floating(b), [...overB, ...restB]), [k, product(sizes(b, restB))]);
  return reshape(matmul(left, right), [...sizes(a, restA), ...sizes(b, restB)]);
}

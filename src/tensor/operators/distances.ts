import { autocasting } from "../autocast";
import { broadcastShapes, describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { add, clamp, div, mul, sqrt, sub } from "./elementwise";
import { vectorNorm } from "./norms";
import type { Dims } from "./reduction";
import { sum } from "./reduction";
import { expand } from "./views";

/** Values of at least `least` that pass gradients on as if there were no limit. */
export const raised = (values: Tensor, least: number): Tensor =>
  add(sub(values, values.detach()), clamp(values.detach(), least, null));

/** The cosine of the angle between vectors along `dim`; lengths below eps count as eps. Shapes broadcast. */
export const cosineSimilarity = autocasting(
  "cosineSimilarity",
  (x1: Tensor, x2: Tensor, dim = 1, eps = 1e-8): Tensor => {
    const shape = broadcastShapes(x1.shape, x2.shape);
    if (!shape)
      throw new OperatorError(
        "cosineSimilarity",
        `the shapes ${describeShape(x1.shape)} and ${describeShape(x2.shape)} don't broadcast; expected sizes that are equal or 1`,
      );
    const unit = (of: Tensor) => div(of, raised(vectorNorm(of, 2, dim, true), eps));
    return sum(mul(unit(expand(x1, shape)), unit(expand(x2, shape))), dim);
  },
);

/** The cosine along `dim` as cosineEmbeddingLoss takes it: 1e-12 is added to the squared lengths. */
export function cosineSimilarityOfSquares(x1: Tensor, x2: Tensor, dim: number): Tensor {
  const square = (of: Tensor) => add(sum(mul(of, of), dim), 1e-12);
  return div(sum(mul(x1, x2), dim), sqrt(mul(square(x1), square(x2))));
}

/** The norm of x1 - x2 + eps along the last dimension. */
export const pairwiseDistance = autocasting(
  "pairwiseDistance",
  (x1: Tensor, x2: Tensor, p = 2, eps = 1e-6, keepdim = false): Tensor =>
    vectorNorm(add(sub(x1, x2), eps), p, -1, keepdim),
);

/** Vectors along `dim` of p-norm 1; norms below eps count as eps. */
export const normalize = (input: Tensor, p = 2, dim: Dims = 1, eps = 1e-12): Tensor =>
  div(input, clamp(vectorNorm(input, p, dim, true), eps, null));

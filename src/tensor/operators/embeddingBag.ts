import { OperatorError, sameShape } from "../shape";
import type { Tensor } from "../tensor";
import { arange } from "./creation";
import { div, ge, gt, logicalAnd, lt, maximum, mul, ne, to, where } from "./elementwise";
import { embedding, paddingIndex } from "./embedding";
import { matmul } from "./matrix";
import { maxOver, sum } from "./reduction";
import { cat, narrow, reshape, unsqueeze } from "./views";

export interface EmbeddingBagOptions {
  /** int32 [B]: where each bag begins, for indices of one dimension. */
  readonly offsets?: Tensor | null;
  /** How the rows of a bag become one. Default: "mean". */
  readonly mode?: "sum" | "mean" | "max";
  /** Factors of the rows, in the indices' shape; only for "sum". */
  readonly perSampleWeights?: Tensor | null;
  /** Whether the last offset is the end of the last bag. Default: false. */
  readonly includeLastOffset?: boolean;
  /** An index that isn't part of any bag; negative ones count from the end. Default: none. */
  readonly paddingIdx?: number | null;
  /** Whether a row's gradient is divided by the number of its uses. Default: false. */
  readonly scaleGradByFreq?: boolean;
}

/**
 * torch.nn.functional.embedding_bag: the sum, mean or maximum of the rows of each bag; 0 for an empty one.
 * @param indices int32 [B, N], a bag a row, or [N] with offsets.
 * @param weight floats [V, D].
 * @returns [B, D].
 */
export function embeddingBag(indices: Tensor, weight: Tensor, options: EmbeddingBagOptions = {}): Tensor {
  const operator = "embeddingBag";
  const { mode = "mean", perSampleWeights = null, scaleGradByFreq = false, paddingIdx = null } = options;
  const { offsets = null, includeLastOffset = false } = options;
  if (indices.ndim !== 1 && indices.ndim !== 2)
    throw new OperatorError(operator, `the indices are ${indices}; expected int32 [B, N], or [N] with offsets`);
  if ((indices.ndim === 1) !== (offsets !== null))
    throw new OperatorError(operator, "expected offsets with indices of one dimension, and only with them");
  if (perSampleWeights && (mode !== "sum" || !sameShape(perSampleWeights.shape, indices.shape)))
    throw new OperatorError(
      operator,
      `perSampleWeights is ${perSampleWeights} in the mode ${mode}; expected the indices' shape and the mode sum`,
    );
  const count = indices.numel;
  const flat = to(reshape(indices, [count]), "int32");
  const rows = embedding(flat, weight, { paddingIdx, scaleGradByFreq });
  const weighted = perSampleWeights ? mul(rows, reshape(perSampleWeights, [count, 1])) : rows;
  const padding = paddingIndex(operator, paddingIdx, weight.shape[0]!);
  const bags = bagsOf(offsets ?? arange(0, count, indices.shape[1] ?? 1, "int32"), includeLastOffset, count);
  const isMember = padding < 0 ? bags : logicalAnd(bags, unsqueeze(ne(flat, padding), 0));
  const members = to(isMember, weighted.dtype);
  switch (mode) {
    case "sum":
      return matmul(members, weighted);
    case "mean":
      return div(matmul(members, weighted), maximum(sum(members, 1, true), 1));
    case "max": {
      const inBags = where(unsqueeze(isMember, -1), unsqueeze(rows, 0), Number.NEGATIVE_INFINITY);
      const { values } = maxOver(inBags, 1);
      return where(gt(sum(members, 1, true), 0), values, 0);
    }
  }
}

/** bool [B, N]: whether a place is in a bag. */
function bagsOf(offsets: Tensor, includeLastOffset: boolean, count: number): Tensor {
  const bags = offsets.numel - (includeLastOffset ? 1 : 0);
  const starts = narrow(offsets, 0, 0, bags);
  const rest = narrow(offsets, 0, 1, offsets.numel - 1);
  const ends = includeLastOffset ? rest : cat([rest, arange(count, count + 1, 1, "int32")]);
  const places = unsqueeze(arange(0, count, 1, "int32"), 0);
  return logicalAnd(ge(places, unsqueeze(starts, 1)), lt(places, unsqueeze(ends, 1)));
}

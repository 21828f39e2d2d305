import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { arange } from "./creation";
import { add, le, mul, where } from "./elementwise";
import { matmul } from "./matrix";
import { softmaxOver } from "./softmax";
import { expand, reshape, transpose, unsqueeze } from "./views";

export interface AttentionOptions {
  /** bool: where a query may look; float32: what is added to the scores. Broadcasts to [..., L, S]. */
  readonly attnMask?: Tensor | null;
  /** Whether query i sees keys 0 to i only. Default: false. */
  readonly isCausal?: boolean;
  /** The factor of the scores. Default: 1 / sqrt(E). */
  readonly scale?: number | null;
  /** What becomes of the attention weights, [..., L, S], before they weigh the values: dropout. Default: nothing. */
  readonly dropout?: ((weights: Tensor) => Tensor) | null;
  /** Whether key and value have fewer heads than the query, each serving several in turn. Default: false. */
  readonly enableGqa?: boolean;
}

/**
 * torch.nn.functional.scaled_dot_product_attention: softmax(query key^T / sqrt(E) + mask) value.
 * @param query float32 [..., L, E], key [..., S, E], value [..., S, Ev].
 * @returns [..., L, Ev].
 */
export function scaledDotProductAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions = {},
): Tensor {
  return attentionWithWeights(query, key, value, options).output;
}

/** `scaledDotProductAttention` with the attention weights, [..., L, S], after dropout. */
export function attentionWithWeights(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions = {},
): { readonly output: Tensor; readonly weights: Tensor } {
  const { attnMask = null, isCausal = false, scale = null, dropout = null, enableGqa = false } = options;
  const operator = "scaledDotProductAttention";
  const [width = 0, places = 0] = [query.shape.at(-1), key.shape.at(-2)];
  if (query.ndim < 2 || key.ndim < 2 || value.ndim < 2 || key.shape.at(-1) !== width || value.shape.at(-2) !== places)
    throw new OperatorError(
      operator,
      `query, key and value have the shapes ${describeShape(query.shape)}, ${describeShape(key.shape)} and ${describeShape(value.shape)}; ` +
        "expected [..., L, E], [..., S, E] and [..., S, Ev]",
    );
  if (attnMask && isCausal)
    throw new OperatorError(operator, "got attnMask and isCausal; expected at most one of them");
  const factor = scale ?? 1 / Math.sqrt(width);
  const heads = enableGqa ? query.shape.at(-3)! : 0;
  const [keys, values] = enableGqa ? [repeatHeads(key, heads), repeatHeads(value, heads)] : [key, value];
  const scores = matmul(mul(query, factor), transpose(keys, -2, -1));
  const masked = isCausal
    ? where(causalMask(query.shape.at(-2)!, places), scores, -Infinity)
    : withMask(scores, attnMask);
  const probabilities = softmaxOver(masked, -1);
  const weights = dropout ? dropout(probabilities) : probabilities;
  return { output: matmul(weights, values), weights };
}

function withMask(scores: Tensor, mask: Tensor | null): Tensor {
  if (!mask) return scores;
  return mask.dtype === "bool" ? where(mask, scores, -Infinity) : add(scores, mask);
}

/** bool [L, S]: whether query i sees key j, which it does for j <= i. */
export const causalMask = (queries: number, keys: number): Tensor =>
  le(unsqueeze(arange(0, keys, 1, "int32"), 0), unsqueeze(arange(0, queries, 1, "int32"), 1));

/** [..., H, S, E] with each head as often in a row as it takes to have `heads`. */
function repeatHeads(input: Tensor, heads: number): Tensor {
  const [own = 0, places = 0, width = 0] = input.shape.slice(-3);
  const times = heads / own;
  if (!Number.isInteger(times))
    throw new OperatorError(
      "scaledDotProductAttention",
      `the query has ${heads} heads and the key or value ${own}; expected a multiple`,
    );
  if (times === 1) return input;
  const lead = input.shape.slice(0, -3);
  const wide = expand(unsqueeze(input, -3), [...lead, own, times, places, width]);
  return reshape(wide, [...lead, heads, places, width]);
}

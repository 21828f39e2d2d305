import { autocasting } from "../autocast";
import { isFloating } from "../dtype";
import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { arange } from "./creation";
import { add, le, mul, to, where } from "./elementwise";
import {
  type AttentionAttributes,
  canFuse,
  canFusePacked,
  composedPacked,
  fusedAttention,
  packedAttention,
} from "./fusedAttention";
import { matmul } from "./matrix";
import { softmaxOver } from "./softmax";
import { expand, reshape, transpose, unsqueeze } from "./views";

export interface AttentionOptions {
  /** bool: where a query may look; floats: what is added to the scores. Broadcasts to [..., L, S]. */
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
 * torch.nn.functional.scaled_dot_product_attention: softmax(query key^T / sqrt(E) + mask) value. For
 * four dimensions, E a multiple of 4 and at most 128, and no dropout, it is one kernel that never holds the weights.
 * @param query floats [..., L, E], key [..., S, E], value [..., S, Ev].
 * @returns [..., L, Ev].
 */
export const scaledDotProductAttention = autocasting(
  "scaledDotProductAttention",
  (query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions = {}): Tensor => {
    const { mask, attributes } = checked(query, key, value, options);
    const sharesHeads = query.ndim === 4 && query.size(-3) === key.size(-3);
    const isPlain = !options.dropout && (sharesHeads || options.enableGqa === true);
    return isPlain && canFuse(query, key, value, mask)
      ? fusedAttention(query, key, value, mask, attributes)
      : attentionWithWeights(query, key, value, options).output;
  },
);

/**
 * Self-attention whose queries, keys and values come from one projection, as flash_attn_qkvpacked_func has it: no part is
 * copied, and the gradient comes in one piece.
 * @param packed [N, L, 3, H, E]: queries, keys and values of each head.
 * @returns [N, L, H, E], as scaledDotProductAttention's with the heads behind the places.
 */
export const packedSelfAttention = autocasting(
  "packedSelfAttention",
  (packed: Tensor, { isCausal = false, scale = null }: PackedAttentionOptions = {}): Tensor => {
    if (packed.ndim !== 5 || packed.size(2) !== 3 || !isFloating(packed.dtype))
      throw new OperatorError("packedSelfAttention", `the input is ${packed}; expected floats [N, L, 3, H, E]`);
    const attributes = { isCausal, scale: scale ?? 1 / Math.sqrt(packed.size(-1)) };
    return canFusePacked(packed) ? packedAttention(packed, attributes) : composedPacked(packed, attributes);
  },
);

export type PackedAttentionOptions = Pick<AttentionOptions, "isCausal" | "scale">;

export interface Attended {
  readonly output: Tensor;
  /** [..., L, S], after dropout. */
  readonly weights: Tensor;
}

/** `scaledDotProductAttention` with the attention weights. */
export const attentionWithWeights = autocasting(
  "attentionWithWeights",
  (query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions = {}): Attended => {
    const { mask, attributes } = checked(query, key, value, options);
    return composedAttention(query, key, value, mask, attributes, options.dropout, options.enableGqa);
  },
);

/** Attention made of products and a softmax. */
export function composedAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  { isCausal, scale }: AttentionAttributes,
  dropout: AttentionOptions["dropout"] = null,
  enableGqa = true,
): Attended {
  const heads = enableGqa && query.ndim > 2 ? query.size(-3) : null;
  const [keys, values] = heads === null ? [key, value] : [repeatHeads(key, heads), repeatHeads(value, heads)];
  const scores = matmul(mul(query, scale), transpose(keys, -2, -1));
  const causal = isCausal ? where(causalMask(query.size(-2), key.size(-2)), scores, Number.NEGATIVE_INFINITY) : scores;
  const probabilities = softmaxOver(mask ? add(causal, to(mask, causal.dtype)) : causal, -1);
  const weights = dropout ? to(dropout(probabilities), probabilities.dtype) : probabilities;
  return { output: matmul(weights, values), weights };
}

/** The mask as what is added to the scores, and what the kernels are made by. */
function checked(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  { attnMask = null, isCausal = false, scale = null }: AttentionOptions,
): { readonly mask: Tensor | null; readonly attributes: AttentionAttributes } {
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
  const mask = attnMask?.dtype === "bool" ? where(attnMask, 0, Number.NEGATIVE_INFINITY) : attnMask;
  return { mask, attributes: { isCausal, scale: scale ?? 1 / Math.sqrt(width) } };
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

import {
  type AttentionOptions,
  attentionWithWeights,
  causalMask,
  linear,
  logicalNot,
  mean,
  narrow,
  OperatorError,
  permute,
  reshape,
  type Shape,
  scaledDotProductAttention,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from "../tensor/index";
import { dropout } from "./dropout";
import { xavierUniform_ } from "./init";
import { emptyParameter, Linear, type LinearOptions } from "./layers";
import { Module } from "./module";

export interface MultiheadAttentionOptions extends LinearOptions {
  /** The part of the attention weights that training drops. Default: 0. */
  readonly dropout?: number;
  /** The key's features. Default: embedDim. */
  readonly kdim?: number;
  /** The value's features. Default: embedDim. */
  readonly vdim?: number;
  /** Whether tensors are [N, L, E] instead of [L, N, E]. Default: false. */
  readonly batchFirst?: boolean;
}

export interface AttendOptions {
  /** bool: where a query may NOT look, as in PyTorch's module; float32: what is added to the scores. [L, S] or [N heads, L, S]. */
  readonly attnMask?: Tensor | null;
  /** bool [N, S]: keys that are ignored. */
  readonly keyPaddingMask?: Tensor | null;
  /** Whether query i sees keys 0 to i only. Default: false. */
  readonly isCausal?: boolean;
  /** Whether the weights are averaged over the heads. Default: true. */
  readonly averageWeights?: boolean;
}

interface Prepared {
  readonly heads: readonly [query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions];
  readonly outputOf: (attended: Tensor) => Tensor;
}

/** torch.nn.MultiheadAttention (Vaswani et al. 2017). */
export class MultiheadAttention extends Module {
  /** [3 embedDim, embedDim], where key and value have as many features as the query. */
  readonly inProjWeight: Tensor | null;
  /** [embedDim, embedDim], [embedDim, kdim] and [embedDim, vdim] elsewhere. */
  readonly qProjWeight: Tensor | null;
  readonly kProjWeight: Tensor | null;
  readonly vProjWeight: Tensor | null;
  /** [3 embedDim] */
  readonly inProjBias: Tensor | null;
  readonly outProj: Linear;

  constructor(
    readonly embedDim: number,
    readonly numHeads: number,
    readonly options: MultiheadAttentionOptions = {},
  ) {
    super();
    const { bias = true, kdim = embedDim, vdim = embedDim } = options;
    if (embedDim % numHeads !== 0)
      throw new Error(
        `MultiheadAttention has ${embedDim} features in ${numHeads} heads; expected a multiple of the heads.`,
      );
    const isJoint = kdim === embedDim && vdim === embedDim;
    const projection = (inputs: number) => (isJoint ? null : xavierUniform_(emptyParameter(embedDim, inputs)));
    this.inProjWeight = isJoint ? xavierUniform_(emptyParameter(3 * embedDim, embedDim)) : null;
    this.qProjWeight = projection(embedDim);
    this.kProjWeight = projection(kdim);
    this.vProjWeight = projection(vdim);
    this.inProjBias = bias ? emptyParameter(3 * embedDim) : null;
    this.outProj = new Linear(embedDim, embedDim, { bias });
    if (this.outProj.bias) this.outProj.bias.write(new Float32Array(embedDim));
  }

  /**
   * @param query [L, N, E], key [S, N, kdim], value [S, N, vdim], or without N; batches first with `batchFirst`.
   * @returns the output alone, for which the matrix of weights isn't held where it is large; `attend` has them too.
   */
  forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attnMask: Tensor | null = null,
    keyPaddingMask: Tensor | null = null,
  ): Tensor {
    const { heads, outputOf } = this.#prepared(query, key, value, { attnMask, keyPaddingMask });
    return outputOf(scaledDotProductAttention(...heads));
  }

  /**
   * As `forward`, with the attention weights.
   * @returns the output in the query's layout, and the weights [N, L, S], or [N, heads, L, S] where not averaged.
   */
  attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    { averageWeights = true, ...options }: AttendOptions = {},
  ): { readonly output: Tensor; readonly weights: Tensor } {
    const { heads, outputOf } = this.#prepared(query, key, value, options);
    const attended = attentionWithWeights(...heads);
    const weights = averageWeights ? mean(attended.weights, 1) : attended.weights;
    return {
      output: outputOf(attended.output),
      weights: query.ndim === 2 ? reshape(weights, weights.shape.slice(1)) : weights,
    };
  }

  /** What attention takes, by heads, and what makes the module's output of attention's. */
  #prepared(query: Tensor, key: Tensor, value: Tensor, options: AttendOptions): Prepared {
    const { batchFirst = false, dropout: p = 0 } = this.options;
    if (query.ndim === 2) {
      // A batch of one.
      const first = batchFirst ? 0 : 1;
      const [q, k, v] = [query, key, value].map((tensor) => unsqueeze(tensor, first)) as [Tensor, Tensor, Tensor];
      const keyPaddingMask = options.keyPaddingMask ? unsqueeze(options.keyPaddingMask, 0) : null;
      const { heads, outputOf } = this.#prepared(q, k, v, { ...options, keyPaddingMask });
      return { heads, outputOf: (attended) => reshape(outputOf(attended), query.shape) };
    }
    if (query.ndim !== 3)
      throw new OperatorError(
        "MultiheadAttention",
        `the query has the shape [${query.shape.join(", ")}]; expected 2 or 3 dimensions`,
      );
    const [q, k, v] = this.#projected(query, key, value).map((tensor) => this.#split(tensor)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const { attnMask = null, keyPaddingMask = null, isCausal = false } = options;
    // Attention takes a mask or is causal. A mask that is given with isCausal is the causal one.
    const [queries, keys] = [q.size(2), k.size(2)];
    const ofScores = attnMask ?? (isCausal && keyPaddingMask ? logicalNot(causalMask(queries, keys)) : null);
    const attention: AttentionOptions = {
      attnMask: maskOf(ofScores, keyPaddingMask, [q.size(0), q.size(1), queries, keys]),
      isCausal: isCausal && !ofScores,
      dropout: p > 0 && this.training ? (weights) => dropout(weights, p) : null,
    };
    return {
      heads: [q, k, v, attention],
      outputOf: (attended) => {
        const joined = permute(attended, batchFirst ? [0, 2, 1, 3] : [2, 0, 1, 3]);
        return this.outProj.forward(reshape(joined, [...joined.shape.slice(0, 2), this.embedDim]));
      },
    };
  }

  /** Query, key and value after their projections. */
  #projected(query: Tensor, key: Tensor, value: Tensor): Tensor[] {
    const { embedDim, inProjWeight, inProjBias } = this;
    const part = (of: Tensor, index: number) => narrow(of, 0, index * embedDim, embedDim);
    if (inProjWeight && query === key && key === value) {
      const all = linear(query, inProjWeight, inProjBias);
      return [0, 1, 2].map((index) => narrow(all, -1, index * embedDim, embedDim));
    }
    const separate = [this.qProjWeight, this.kProjWeight, this.vProjWeight];
    return [query, key, value].map((input, index) => {
      const weight = separate[index] ?? (inProjWeight && part(inProjWeight, index));
      if (!weight) throw new Error("MultiheadAttention has no projection.");
      return linear(input, weight, inProjBias && part(inProjBias, index));
    });
  }

  /** To [N, heads, L, E / heads]. */
  #split(tensor: Tensor): Tensor {
    const batches = this.options.batchFirst ? tensor : transpose(tensor, 0, 1);
    const [images = 0, places = 0] = batches.shape;
    const split = reshape(batches, [images, places, this.numHeads, this.embedDim / this.numHeads]);
    return transpose(split, 1, 2);
  }
}

/** What is added to the scores [N, heads, L, S], to which it broadcasts. */
function maskOf(attnMask: Tensor | null, padding: Tensor | null, scores: Shape): Tensor | null {
  const additive = (mask: Tensor) => (mask.dtype === "bool" ? where(mask, Number.NEGATIVE_INFINITY, 0) : mask);
  const ofScores = attnMask && additive(attnMask.ndim === 3 ? reshape(attnMask, scores) : attnMask);
  const ofKeys = padding && reshape(additive(padding), [scores[0] ?? 0, 1, 1, scores[3] ?? 0]);
  return ofScores && ofKeys ? ofScores.add(ofKeys) : (ofScores ?? ofKeys);
}

import { type EmbeddingBagOptions, type EmbeddingOptions, embedding, embeddingBag, type Tensor } from "../tensor/index";
import { normal_ } from "./init";
import { emptyParameter } from "./layers";
import { Module } from "./module";

/** A table of normal numbers, with zeros in the row of the padding index. */
function tableOf(rows: number, columns: number, paddingIdx: number | null | undefined): Tensor {
  const weight = normal_(emptyParameter(rows, columns));
  if (paddingIdx === null || paddingIdx === undefined) return weight;
  const row = paddingIdx < 0 ? paddingIdx + rows : paddingIdx;
  const words = weight.source.kind === "storage" ? weight.source.storage.hostWords : null;
  if (!words || row < 0 || row >= rows)
    throw new Error(`The padding index is ${paddingIdx}; expected an index of ${rows} rows.`);
  weight.write(Float32Array.from(words, (value, at) => (Math.floor(at / columns) === row ? 0 : value)));
  return weight;
}

/** Rows of a learnt table by their indices: int32 of any shape to [..., embeddingDim]. */
export class Embedding extends Module {
  /** [numEmbeddings, embeddingDim] */
  readonly weight: Tensor;

  constructor(
    numEmbeddings: number,
    embeddingDim: number,
    readonly options: EmbeddingOptions = {},
  ) {
    super();
    this.weight = tableOf(numEmbeddings, embeddingDim, options.paddingIdx);
  }

  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, this.options);
  }
}

export type EmbeddingBagLayerOptions = Omit<EmbeddingBagOptions, "offsets" | "perSampleWeights">;

/** The sum, mean or maximum of the rows of each bag. */
export class EmbeddingBag extends Module {
  /** [numEmbeddings, embeddingDim] */
  readonly weight: Tensor;

  constructor(
    numEmbeddings: number,
    embeddingDim: number,
    readonly options: EmbeddingBagLayerOptions = {},
  ) {
    super();
    this.weight = tableOf(numEmbeddings, embeddingDim, options.paddingIdx);
  }

  /** @param indices int32 [B, N], or [N] with offsets [B]. */
  forward(indices: Tensor, offsets: Tensor | null = null, perSampleWeights: Tensor | null = null): Tensor {
    return embeddingBag(indices, this.weight, { ...this.options, offsets, perSampleWeights });
  }
}

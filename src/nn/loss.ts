import {
  type BinaryCrossEntropyWithLogitsOptions,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  type CrossEntropyOptions,
  cosineEmbeddingLoss,
  crossEntropy,
  type GaussianOptions,
  gaussianNllLoss,
  type HuberOptions,
  hingeEmbeddingLoss,
  huberLoss,
  type KlDivOptions,
  klDiv,
  type LossOptions,
  l1Loss,
  type MarginOptions,
  marginRankingLoss,
  mseLoss,
  multilabelSoftMarginLoss,
  type NllLossOptions,
  nllLoss,
  type PoissonOptions,
  poissonNllLoss,
  type SmoothL1Options,
  smoothL1Loss,
  softMarginLoss,
  type Tensor,
  type TripletOptions,
  tripletMarginLoss,
  type WeightedLossOptions,
} from "../tensor/index";
import { Module, type ModuleClass } from "./module";

/** The module of a loss of an input and a target. */
const ofTwo = <Options>(
  loss: (input: Tensor, target: Tensor, options?: Options) => Tensor,
): ModuleClass<[options?: Options], [input: Tensor, target: Tensor]> =>
  class extends Module {
    constructor(readonly options?: Options) {
      super();
    }

    forward(input: Tensor, target: Tensor): Tensor {
      return loss(input, target, this.options);
    }
  };

/** The module of a loss of three tensors. */
const ofThree = <Options>(
  loss: (first: Tensor, second: Tensor, third: Tensor, options?: Options) => Tensor,
): ModuleClass<[options?: Options], [first: Tensor, second: Tensor, third: Tensor]> =>
  class extends Module {
    constructor(readonly options?: Options) {
      super();
    }

    forward(first: Tensor, second: Tensor, third: Tensor): Tensor {
      return loss(first, second, third, this.options);
    }
  };

/** Of logits [N, C, ...] and int32 classes [N, ...] or float32 probabilities in the logits' shape. */
export class CrossEntropyLoss extends ofTwo<CrossEntropyOptions>(crossEntropy) {}
/** Of log-probabilities [N, C, ...] and int32 classes [N, ...]. */
export class NLLLoss extends ofTwo<NllLossOptions>(nllLoss) {}
export class L1Loss extends ofTwo<LossOptions>(l1Loss) {}
export class MSELoss extends ofTwo<LossOptions>(mseLoss) {}
export class SmoothL1Loss extends ofTwo<SmoothL1Options>(smoothL1Loss) {}
export class HuberLoss extends ofTwo<HuberOptions>(huberLoss) {}
/** Of probabilities. */
export class BCELoss extends ofTwo<WeightedLossOptions>(binaryCrossEntropy) {}
export class BCEWithLogitsLoss extends ofTwo<BinaryCrossEntropyWithLogitsOptions>(binaryCrossEntropyWithLogits) {}
/** Of log-probabilities. */
export class KLDivLoss extends ofTwo<KlDivOptions>(klDiv) {}
export class PoissonNLLLoss extends ofTwo<PoissonOptions>(poissonNllLoss) {}
export class HingeEmbeddingLoss extends ofTwo<MarginOptions>(hingeEmbeddingLoss) {}
export class SoftMarginLoss extends ofTwo<LossOptions>(softMarginLoss) {}
export class MultiLabelSoftMarginLoss extends ofTwo<WeightedLossOptions>(multilabelSoftMarginLoss) {}
/** Of means, targets and variances. */
export class GaussianNLLLoss extends ofThree<GaussianOptions>(gaussianNllLoss) {}
/** Of two inputs and a target. */
export class MarginRankingLoss extends ofThree<MarginOptions>(marginRankingLoss) {}
/** Of two inputs and a target. */
export class CosineEmbeddingLoss extends ofThree<MarginOptions>(cosineEmbeddingLoss) {}
/** Of anchor, positive and negative. */
export class TripletMarginLoss extends ofThree<TripletOptions>(tripletMarginLoss) {}

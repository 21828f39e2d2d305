import {
  type CrossEntropyOptions,
  crossEntropy,
  mean,
  mul,
  type NllLossOptions,
  nllLoss,
  type Reduction,
  sub,
  sum,
  type Tensor,
} from "../tensor/index";
import { Module } from "./module";

/** The cross-entropy of softmax(logits) with class indices or class probabilities. */
export class CrossEntropyLoss extends Module {
  constructor(readonly options: CrossEntropyOptions = {}) {
    super();
  }

  /** @param logits [N, C, ...]; target int32 [N, ...], or float32 probabilities in the logits' shape. */
  forward(logits: Tensor, target: Tensor): Tensor {
    return crossEntropy(logits, target, this.options);
  }
}

/** The negative log-likelihood of class indices. */
export class NLLLoss extends Module {
  constructor(readonly options: NllLossOptions = {}) {
    super();
  }

  /** @param logProbabilities [N, C, ...]; target int32 [N, ...]. */
  forward(logProbabilities: Tensor, target: Tensor): Tensor {
    return nllLoss(logProbabilities, target, this.options);
  }
}

/** The mean of squared differences. */
export class MSELoss extends Module {
  constructor(readonly reduction: Reduction = "mean") {
    super();
  }

  forward(input: Tensor, target: Tensor): Tensor {
    const difference = sub(input, target);
    const squares = mul(difference, difference);
    switch (this.reduction) {
      case "none":
        return squares;
      case "sum":
        return sum(squares);
      case "mean":
        return mean(squares);
    }
  }
}

import { autocasting } from "../autocast";
import { describeShape, normalizeDim, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import {
  abs,
  add,
  clamp,
  div,
  ge,
  gt,
  isnan,
  le,
  lt,
  mul,
  neg,
  type Operand,
  sigmoid,
  sub,
  tanh,
  to,
  where,
} from "./elementwise";
import { expm1, logaddexp } from "./exponential";
import { floating } from "./promotion";
import { softmaxOver } from "./softmax";
import { narrow, reshape } from "./views";

/*
 * PyTorch's activation functions, made of elementwise operators, whose chains are fused. The conditions are those of
 * PyTorch's backward passes, so that gradients where two pieces meet are its too. A branch that isn't taken must stay
 * finite, since its gradient is multiplied by 0.
 */

/** x where x > 0, negativeSlope x elsewhere. */
export function leakyRelu(input: Tensor, negativeSlope = 0.01): Tensor {
  return where(gt(input, 0), input, mul(input, negativeSlope));
}

/**
 * Leaky ReLU with slopes that are learnt.
 * @param weight one slope, or one for each of the input's channels, its dimension 1.
 */
export const prelu = autocasting("prelu", (input: Tensor, weight: Tensor): Tensor => {
  const channels = input.shape[1] ?? 1;
  if (weight.ndim > 1 || (weight.numel !== 1 && weight.numel !== channels))
    throw new OperatorError(
      "prelu",
      `the weight has shape ${describeShape(weight.shape)} and the input ${describeShape(input.shape)}; expected one weight, or one for each of ${channels} channels`,
    );
  const shape = input.shape.map((_, d) => (d === 1 && weight.numel > 1 ? -1 : 1));
  return where(gt(input, 0), input, mul(input, reshape(weight, shape)));
});

/** scale (x where x > 0, alpha (exp(inputScale x) - 1) elsewhere). */
function scaledElu(input: Tensor, alpha: number, scale: number, inputScale: number): Tensor {
  const negative = mul(clamp(input, null, 0), inputScale);
  return where(gt(input, 0), mul(input, scale), mul(expm1(negative), alpha * scale));
}

/** x where x > 0, alpha (exp(x) - 1) elsewhere (Clevert et al. 2016). */
export const elu = (input: Tensor, alpha = 1): Tensor => scaledElu(input, alpha, 1, 1);

/** ELU with a continuous derivative: x where x > 0, alpha (exp(x / alpha) - 1) elsewhere (Barron 2017). */
export function celu(input: Tensor, alpha = 1): Tensor {
  if (alpha === 0) throw new OperatorError("celu", "alpha is 0; expected another number");
  return scaledElu(input, alpha, 1, 1 / alpha);
}

/** ELU scaled such that layers normalise themselves (Klambauer et al. 2017). */
export const selu = (input: Tensor): Tensor => scaledElu(input, 1.6732632423543772, 1.0507009873554805, 1);

/** Limits values to [minVal, maxVal]; unlike `clamp`, no gradient passes at the limits. */
export function hardtanh(input: Tensor, minVal = -1, maxVal = 1): Tensor {
  const { dtype } = input;
  if (minVal >= maxVal) return to(where(isnan(input), floating(input), maxVal), dtype);
  return to(where(le(input, minVal), minVal, where(ge(input, maxVal), maxVal, input)), dtype);
}

/** min(max(x, 0), 6). */
export const relu6 = (input: Tensor): Tensor => hardtanh(input, 0, 6);

/** relu6(x + 3) / 6. */
export const hardsigmoid = (input: Tensor): Tensor => div(relu6(add(input, 3)), 6);

/** x relu6(x + 3) / 6 (Howard et al. 2019). */
export function hardswish(input: Tensor): Tensor {
  const inside = clamp(input, -3, 3);
  return where(lt(input, -3), 0, where(lt(input, 3), div(mul(inside, add(inside, 3)), 6), input));
}

/** 0 where |x| <= lambda, x elsewhere. */
export const hardshrink = (input: Tensor, lambda = 0.5): Tensor => where(le(abs(input), lambda), 0, input);

/** x moved towards 0 by lambda. */
export function softshrink(input: Tensor, lambda = 0.5): Tensor {
  if (!(lambda >= 0)) throw new OperatorError("softshrink", `lambda is ${lambda}; expected a number of at least 0`);
  return where(gt(input, lambda), sub(input, lambda), where(lt(input, -lambda), add(input, lambda), mul(input, 0)));
}

/** x - tanh(x). */
export const tanhshrink = (input: Tensor): Tensor => sub(input, tanh(input));

/** x where x > threshold, value elsewhere. */
export const threshold = (input: Tensor, limit: number, value: number): Tensor => where(le(input, limit), value, input);

/** x sigmoid(x), also called swish. */
export const silu = (input: Tensor): Tensor => mul(input, sigmoid(input));

/** x tanh(softplus(x)) (Misra 2020). */
export const mish = (input: Tensor): Tensor => mul(input, tanh(softplus(input)));

/** log(1 + exp(beta x)) / beta, and x itself where beta x is over the threshold. */
export const softplus = autocasting("softplus", (input: Tensor, beta = 1, limit = 20): Tensor => {
  const scaled = beta === 1 ? input : mul(input, beta);
  const smooth = logaddexp(scaled, 0);
  return where(gt(scaled, limit), input, beta === 1 ? smooth : div(smooth, beta));
});

/** log(sigmoid(x)), without overflow. */
export const logsigmoid = (input: Tensor): Tensor => neg(logaddexp(neg(input), 0));

/** x / (1 + |x|). */
export const softsign = (input: Tensor): Tensor => div(input, add(abs(input), 1));

/** softmax(-x) along `dim`. */
export const softmin = (input: Tensor, dim: number): Tensor => softmaxOver(neg(input), dim);

/** a sigmoid(b), where a and b are the halves of the input along `dim` (Dauphin et al. 2017). */
export function glu(input: Tensor, dim = -1): Tensor {
  const d = normalizeDim("glu", dim, input.ndim);
  const size = input.shape[d] ?? 1;
  if (size % 2 !== 0)
    throw new OperatorError(
      "glu",
      `dimension ${dim} of the input ${describeShape(input.shape)} has ${size} entries; expected an even number`,
    );
  return mul(narrow(input, d, 0, size / 2), sigmoid(narrow(input, d, size / 2, size / 2)));
}

/** Leaky ReLU with the mean of the slopes that training draws between `lower` and `upper`. */
export const rrelu = (input: Tensor, lower = 1 / 8, upper = 1 / 3, slopes: Operand = (lower + upper) / 2): Tensor =>
  where(ge(input, 0), input, mul(input, slopes));

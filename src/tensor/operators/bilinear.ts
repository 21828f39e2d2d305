import { describeShape, OperatorError, sameShape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { add, mul } from "./elementwise";
import { matmul } from "./matrix";
import { sum } from "./reduction";
import { permute, reshape, unsqueeze } from "./views";

/**
 * torch.nn.functional.bilinear: for each output k the product input1^T weight[k] input2, plus its bias.
 * @param input1 [..., I], input2 [..., J], weight [K, I, J], bias [K]; the result is [..., K].
 */
export function bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | null = null): Tensor {
  const lead = input1.shape.slice(0, -1);
  const [outputs = 0, first = 0, second = 0] = weight.shape;
  if (
    weight.ndim !== 3 ||
    !sameShape(input1.shape, [...lead, first]) ||
    !sameShape(input2.shape, [...lead, second]) ||
    (bias && !sameShape(bias.shape, [outputs]))
  )
    throw new OperatorError(
      "bilinear",
      `the inputs have shapes ${describeShape(input1.shape)} and ${describeShape(input2.shape)}, the weight ${describeShape(weight.shape)}` +
        `${bias ? ` and the bias ${describeShape(bias.shape)}` : ""}; expected [..., I], [..., J], [K, I, J] and [K]`,
    );
  const rows = sizeOf(lead);
  const flat = reshape(permute(weight, [1, 0, 2]), [first, outputs * second]);
  const half = reshape(matmul(reshape(input1, [rows, first]), flat), [rows, outputs, second]);
  const whole = sum(mul(half, unsqueeze(reshape(input2, [rows, second]), 1)), 2);
  const result = reshape(whole, [...lead, outputs]);
  return bias ? add(result, bias) : result;
}

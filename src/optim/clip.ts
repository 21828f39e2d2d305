import {
  abs,
  add,
  amax,
  clamp,
  copy_,
  div,
  FlatParameters,
  mul,
  noGrad,
  pow,
  reshape,
  sqrt,
  stack,
  sum,
  type Tensor,
} from "../tensor/index";

/** The gradients that parameters have; of flat ones all as one tensor, without the slots at its end. */
function gradientsOf(parameters: Iterable<Tensor> | FlatParameters): Tensor[] {
  if (parameters instanceof FlatParameters) return [parameters.gradientRange(0, parameters.layout.length)];
  return [...parameters].flatMap(({ grad }) => (grad ? [grad] : []));
}

export interface ClipNormOptions {
  /** The norm's order; Infinity for the largest magnitude. Default: 2. */
  readonly normType?: number;
}

/**
 * torch.nn.utils.clip_grad_norm_: scales the gradients in place such that the norm of all together is at most `maxNorm`.
 * @returns the norm before, [].
 */
export function clipGradNorm_(
  parameters: Iterable<Tensor> | FlatParameters,
  maxNorm: number,
  { normType = 2 }: ClipNormOptions = {},
): Tensor {
  return noGrad(() => {
    const gradients = gradientsOf(parameters);
    const norm = normOf(gradients, normType);
    const factor = clamp(div(maxNorm, add(norm, 1e-6)), null, 1);
    for (const gradient of gradients) copy_(gradient, mul(gradient, factor));
    return norm;
  });
}

/** torch.nn.utils.clip_grad_value_: limits each value of the gradients to [-clipValue, clipValue], in place. */
export function clipGradValue_(parameters: Iterable<Tensor> | FlatParameters, clipValue: number): void {
  noGrad(() => {
    for (const gradient of gradientsOf(parameters)) copy_(gradient, clamp(gradient, -clipValue, clipValue));
  });
}

function normOf(gradients: readonly Tensor[], order: number): Tensor {
  if (gradients.length === 0) throw new Error("No parameter has a gradient; call backward() before they are clipped.");
  const flat = gradients.map((gradient) => reshape(gradient, [gradient.numel]));
  if (order === Infinity) return amax(stack(flat.map((gradient) => amax(abs(gradient)))));
  if (order === 2) return sqrt(sum(stack(flat.map((gradient) => sum(mul(gradient, gradient))))));
  return pow(sum(stack(flat.map((gradient) => sum(pow(abs(gradient), order))))), 1 / order);
}

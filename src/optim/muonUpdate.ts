import {
  add,
  div,
  liveScalars,
  matmul,
  maximum,
  mul,
  noGrad,
  sqrt,
  sum,
  type Tensor,
  tensor,
  transpose,
  type UpdateFormula,
  update_,
} from "../tensor/index";
import type { MuonSpec } from "./spec";
import { type ParameterUpdate, readAll, type StepSettings } from "./tensorUpdate";
import { checkState } from "./updateRule";

/**
 * The nearest orthogonal matrix, about, by Newton and Schulz's iteration with a quintic polynomial (Jordan et al. 2024):
 * X = a X + (b A + c A A) X for A = X Xᵀ, from X = M / |M| on. It takes singular values to between 0.7 and 1.2.
 */
function orthogonalized(matrix: Tensor, { nsCoefficients: [a, b, c], nsSteps, epsilon }: MuonSpec): Tensor {
  const [rows = 0, columns = 0] = matrix.shape;
  const isTall = rows > columns;
  const wide = isTall ? transpose(matrix, 0, 1) : matrix;
  let x = div(wide, maximum(sqrt(sum(mul(wide, wide))), epsilon));
  for (let step = 0; step < nsSteps; step++) {
    const gram = matmul(x, transpose(x, 0, 1));
    const factor = add(mul(gram, b), mul(matmul(gram, gram), c));
    x = add(mul(x, a), matmul(factor, x));
  }
  return isTall ? transpose(x, 0, 1) : x;
}

/** By how much a matrix's shape scales the learning rate, as torch.optim.Muon's adjust_lr_fn. */
function lengthFactor([rows = 1, columns = 1]: readonly number[], adjustLr: MuonSpec["adjustLr"]): number {
  switch (adjustLr) {
    case "original":
      return Math.sqrt(Math.max(1, rows / columns));
    case "matchRmsAdamw":
      return 0.2 * Math.sqrt(Math.max(rows, columns));
  }
}

/** v = momentum v + (1 - momentum) g, and the direction: g + momentum (v - g) where it is Nesterov's, otherwise v. */
function momentumFormula({ maximize, nesterov }: MuonSpec): UpdateFormula {
  const statements = `
    let gradient = ${maximize ? "-t2" : "t2"};
    t0 = s0 * t0 + s1 * gradient;
    t1 = ${nesterov ? "gradient + s0 * (t0 - gradient)" : "t0"};`;
  return { name: "muonMomentum", statements };
}

/** w = w (1 - lr decay) - lr factor x. */
const weightFormula: UpdateFormula = { name: "muonStep", statements: "t0 = s0 * t0 - s1 * t1;" };

/** torch.optim.Muon on one matrix: its momentum, the orthogonal matrix next to the direction, and a step along that. */
export class MuonUpdate implements ParameterUpdate {
  steps = 0;
  readonly #momentum: UpdateFormula;
  readonly #buffer: Tensor;
  readonly #direction: Tensor;
  readonly #factor: number;

  /** @throws Error for what isn't a matrix. */
  constructor(
    readonly spec: MuonSpec,
    readonly weights: Tensor,
  ) {
    if (weights.ndim !== 2)
      throw new Error(
        `Muon got the parameter ${weights}; expected matrices. Give others to a group with another optimizer, such as adamw.`,
      );
    const { shape, numel } = weights;
    this.#momentum = momentumFormula(spec);
    this.#buffer = tensor(new Float32Array(numel), { shape });
    this.#direction = tensor(new Float32Array(numel), { shape });
    this.#factor = lengthFactor(shape, spec.adjustLr);
  }

  step(gradients: Tensor, settings: () => StepSettings, gate: Tensor | null = null): void {
    const { weights, spec } = this;
    const moments = liveScalars(() => {
      const { momentum = spec.momentum } = settings();
      this.steps += 1;
      return [momentum, 1 - momentum];
    });
    update_(this.#momentum, [this.#buffer, this.#direction], [gradients], moments, gate);
    const along = noGrad(() => orthogonalized(this.#direction, spec));
    const lengths = liveScalars(() => {
      const { learningRate } = settings();
      return [1 - learningRate * spec.weightDecay, learningRate * this.#factor];
    });
    update_(weightFormula, [weights], [along], lengths, gate);
  }

  readState(): Promise<Float32Array<ArrayBuffer>[]> {
    return readAll([this.#buffer]);
  }

  writeState(state: readonly Float32Array[], steps: number): void {
    checkState(this.spec.name, [{ name: "momentumBuffer", length: this.weights.numel }], state, steps);
    for (const array of state) this.#buffer.write(array);
    this.steps = steps;
  }
}

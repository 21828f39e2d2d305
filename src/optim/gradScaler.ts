import { all, copy_, isfinite, mul, noGrad, type Tensor, tensor } from "../tensor/index";
import type { Optimizer } from "./optimizer";

export interface GradScalerOptions {
  /** Default: 65536. */
  readonly initScale?: number;
  /** Default: 2. */
  readonly growthFactor?: number;
  /** Default: 0.5. */
  readonly backoffFactor?: number;
  /** Steps without an infinity until the scale grows. Default: 2000. */
  readonly growthInterval?: number;
}

/**
 * torch.cuda.amp.GradScaler: scales a loss, so that float16 gradients don't vanish, and skips the steps whose gradients
 * overflowed.
 */
export class GradScaler {
  /** [], so that a new scale makes no new plan. */
  readonly #scale: Tensor;
  #value: number;
  #goodSteps = 0;
  /** The optimizers whose gradients are unscaled since the last update. */
  readonly #unscaled = new Set<Pick<Optimizer, "groups">>();
  #foundInfinity = false;

  constructor(readonly options: GradScalerOptions = {}) {
    this.#value = options.initScale ?? 65536;
    this.#scale = tensor(this.#value);
  }

  getScale(): number {
    return this.#value;
  }

  /** The loss times the scale. */
  scale(loss: Tensor): Tensor {
    return mul(loss, this.#scale);
  }

  /** Divides an optimizer's gradients by the scale, to be clipped before `step`. */
  unscale_(optimizer: Pick<Optimizer, "groups">): void {
    const { groups } = optimizer;
    if (this.#unscaled.has(optimizer))
      throw new Error("The gradients are unscaled already; call unscale_ once before each step.");
    const inverse = 1 / this.#value;
    noGrad(() => {
      for (const { parameters } of groups) for (const { grad } of parameters) if (grad) copy_(grad, mul(grad, inverse));
    });
    this.#unscaled.add(optimizer);
  }

  /** Takes the optimizer's step, unless a gradient isn't finite. Waits for the GPU. Says whether it was taken. */
  async step(optimizer: Pick<Optimizer, "groups" | "step">): Promise<boolean> {
    if (!this.#unscaled.has(optimizer)) this.unscale_(optimizer);
    const gradients = optimizer.groups.flatMap(({ parameters }) => parameters.flatMap(({ grad }) => grad ?? []));
    const checks = noGrad(() => gradients.map((gradient) => all(isfinite(gradient)).item()));
    const allFinite = (await Promise.all(checks)).every((check) => check === 1);
    if (allFinite) optimizer.step();
    this.#foundInfinity ||= !allFinite;
    return allFinite;
  }

  /** Lowers the scale after an overflow, and raises it after many steps without one. Call it once a step. */
  update(): void {
    const { growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = this.options;
    const before = this.#value;
    if (this.#foundInfinity) {
      this.#value *= backoffFactor;
      this.#goodSteps = 0;
    } else if (++this.#goodSteps === growthInterval) {
      // Beyond float32's range it stays, as in PyTorch.
      if (Number.isFinite(Math.fround(this.#value * growthFactor))) this.#value *= growthFactor;
      this.#goodSteps = 0;
    }
    this.#foundInfinity = false;
    this.#unscaled.clear();
    if (this.#value !== before) this.#scale.write([this.#value]);
  }

  stateDict() {
    return { scale: this.#value, goodSteps: this.#goodSteps };
  }

  loadStateDict({ scale, goodSteps }: ReturnType<GradScaler["stateDict"]>): void {
    this.#value = scale;
    this.#goodSteps = goodSteps;
    this.#scale.write([scale]);
  }
}

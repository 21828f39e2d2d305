import { type Tensor, zeroGradients } from "../tensor/index";
import { MuonUpdate } from "./muonUpdate";
import {
  type AdadeltaOptions,
  type AdagradOptions,
  type AdamaxOptions,
  type AdamOptions,
  adadelta,
  adagrad,
  adam,
  adamax,
  adamw,
  type LionOptions,
  lion,
  type MuonOptions,
  type MuonSpec,
  muon,
  type NadamOptions,
  nadam,
  type OptimizerSpec,
  type RadamOptions,
  type RmspropOptions,
  radam,
  rmsprop,
  type SgdOptions,
  sgd,
} from "./spec";
import { type ParameterUpdate, TensorUpdate, UpdateKernel } from "./tensorUpdate";

/** Parameters with options of their own; what they leave out is the optimizer's. */
export type ParameterGroup<Options> = Options & { readonly parameters: Iterable<Tensor> };

/** What the parameters of a group are optimized by. */
export type GroupSpec = OptimizerSpec | MuonSpec;

/** A group as an optimizer holds it. A schedule sets `learningRate`, and some the momentum, between steps. */
export interface OptimizerGroup {
  readonly parameters: readonly Tensor[];
  readonly spec: GroupSpec;
  learningRate: number;
  /** The momentum, or Adam's beta1, where a schedule has set it; otherwise it is the specification's. */
  momentum?: number;
}

/** What of an optimizer a checkpoint needs: for each group its learning rate, and for each parameter its state. */
export interface OptimizerState {
  readonly groups: readonly {
    readonly learningRate: number;
    readonly parameters: readonly { readonly steps: number; readonly arrays: readonly Float32Array[] }[];
  }[];
}

function updatesOf(spec: GroupSpec, parameters: readonly Tensor[]): ParameterUpdate[] {
  if (spec.name === "muon") return parameters.map((parameter) => new MuonUpdate(spec, parameter));
  const kernel = new UpdateKernel(spec);
  return parameters.map((parameter) => new TensorUpdate(kernel, parameter));
}

/**
 * An optimizer over any tensors, as torch.optim: a kernel for each parameter that has a gradient. Its groups may have
 * specifications of different optimizers.
 */
export class Optimizer {
  readonly groups: readonly OptimizerGroup[];
  readonly #updates: readonly (readonly ParameterUpdate[])[];

  constructor(groups: readonly { readonly parameters: Iterable<Tensor>; readonly spec: GroupSpec }[]) {
    this.groups = groups.map(({ parameters, spec }) => ({
      parameters: [...parameters],
      spec,
      learningRate: spec.learningRate,
    }));
    const all = this.groups.flatMap((group) => group.parameters);
    if (all.length === 0) throw new Error("The optimizer got no parameters; give it a module's parameters().");
    if (new Set(all).size < all.length) throw new Error("The optimizer got a parameter twice; give each to one group.");
    this.#updates = this.groups.map(({ parameters, spec }) => updatesOf(spec, parameters));
  }

  /** Changes every parameter that has a gradient, at the next flush. */
  step(): void {
    for (const [index, group] of this.groups.entries())
      for (const update of this.#updates[index] ?? []) {
        const { grad } = update.weights;
        if (grad) update.step(grad, () => group);
      }
  }

  /** Sets the parameters' gradients to zero, in the memory they have. */
  zeroGrad(): void {
    zeroGradients(this.groups.flatMap((group) => group.parameters));
  }

  async stateDict(): Promise<OptimizerState> {
    const groups = this.groups.map(async ({ learningRate }, index) => {
      const updates = this.#updates[index] ?? [];
      const parameters = updates.map(async (update) => ({ steps: update.steps, arrays: await update.readState() }));
      return { learningRate, parameters: await Promise.all(parameters) };
    });
    return { groups: await Promise.all(groups) };
  }

  /** @throws Error where the state comes from other groups, parameters or another kind of optimizer. */
  loadStateDict({ groups }: OptimizerState): void {
    const counts = (of: readonly { readonly parameters: readonly unknown[] }[]) =>
      `[${of.map(({ parameters }) => parameters.length).join(", ")}]`;
    if (counts(groups) !== counts(this.groups))
      throw new Error(
        `The optimizer's state has groups of ${counts(groups)} parameters; expected ${counts(this.groups)}.`,
      );
    for (const [index, { learningRate, parameters }] of groups.entries()) {
      const group = this.groups[index];
      if (group) group.learningRate = learningRate;
      for (const [at, { steps, arrays }] of parameters.entries()) this.#updates[index]?.[at]?.writeState(arrays, steps);
    }
  }
}

type ParametersOrGroups<Options> = Iterable<Tensor> | readonly ParameterGroup<Options>[];

function grouped<Options extends object>(
  parameters: ParametersOrGroups<Options>,
  options: Options,
  specify: (options: Options) => GroupSpec,
) {
  const items = [...parameters];
  const groups = items.filter((item): item is ParameterGroup<Options> => "parameters" in item);
  if (groups.length === 0) {
    const tensors = items.filter((item): item is Tensor => !("parameters" in item));
    return [{ parameters: tensors, spec: specify(options) }];
  }
  if (groups.length < items.length) throw new Error("The optimizer got both parameters and groups; give it one kind.");
  return groups.map(({ parameters: tensors, ...own }) => ({
    parameters: tensors,
    spec: specify({ ...options, ...own }),
  }));
}

/** Stochastic gradient descent, with momentum, Nesterov's too, and weight decay. */
export class SGD extends Optimizer {
  constructor(parameters: ParametersOrGroups<SgdOptions>, options: SgdOptions = {}) {
    super(grouped(parameters, options, sgd));
  }
}

/** Adam, whose weight decay is added to the gradient. */
export class Adam extends Optimizer {
  constructor(parameters: ParametersOrGroups<AdamOptions>, options: AdamOptions = {}) {
    super(grouped(parameters, options, adam));
  }
}

/** Adam with decoupled weight decay. */
export class AdamW extends Optimizer {
  constructor(parameters: ParametersOrGroups<AdamOptions>, options: AdamOptions = {}) {
    super(grouped(parameters, options, adamw));
  }
}

/** Adam with Nesterov momentum. */
export class NAdam extends Optimizer {
  constructor(parameters: ParametersOrGroups<NadamOptions>, options: NadamOptions = {}) {
    super(grouped(parameters, options, nadam));
  }
}

/** Adam with a rectified adaptive step. */
export class RAdam extends Optimizer {
  constructor(parameters: ParametersOrGroups<RadamOptions>, options: RadamOptions = {}) {
    super(grouped(parameters, options, radam));
  }
}

/** Adam by the largest gradient instead of the second moment. */
export class Adamax extends Optimizer {
  constructor(parameters: ParametersOrGroups<AdamaxOptions>, options: AdamaxOptions = {}) {
    super(grouped(parameters, options, adamax));
  }
}

/** Steps divided by the root of all squared gradients' sum. */
export class Adagrad extends Optimizer {
  constructor(parameters: ParametersOrGroups<AdagradOptions>, options: AdagradOptions = {}) {
    super(grouped(parameters, options, adagrad));
  }
}

/** Steps in the units of the steps before, without a learning rate of their own. */
export class Adadelta extends Optimizer {
  constructor(parameters: ParametersOrGroups<AdadeltaOptions>, options: AdadeltaOptions = {}) {
    super(grouped(parameters, options, adadelta));
  }
}

/** Steps divided by the root of the squared gradients' moving average. */
export class RMSprop extends Optimizer {
  constructor(parameters: ParametersOrGroups<RmspropOptions>, options: RmspropOptions = {}) {
    super(grouped(parameters, options, rmsprop));
  }
}

/** Steps along the sign of the momentum. */
export class Lion extends Optimizer {
  constructor(parameters: ParametersOrGroups<LionOptions>, options: LionOptions = {}) {
    super(grouped(parameters, options, lion));
  }
}

/**
 * Steps along the nearest orthogonal matrix to the momentum (Jordan et al. 2024, as torch.optim.Muon). It takes matrices;
 * give the others, and embeddings, to Adam: `new Optimizer([{ parameters: matrices, spec: muon() }, { parameters:
 * others, spec: adamw() }])` is both at once.
 */
export class Muon extends Optimizer {
  constructor(parameters: ParametersOrGroups<MuonOptions>, options: MuonOptions = {}) {
    super(grouped(parameters, options, muon));
  }
}

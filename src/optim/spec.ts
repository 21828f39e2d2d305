/**
 * What an optimizer is, as plain JSON: it stands in a job's specification, travels to every member, and both the WGSL
 * and the CPU implementation are made from it (`updateRule.ts`).
 */

/** Stochastic gradient descent, as torch.optim.SGD. */
export interface SgdSpec {
  readonly name: "sgd";
  readonly learningRate: number;
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;
  readonly weightDecay: number;
  readonly maximize: boolean;
}

/** torch.optim.Adam (weight decay added to the gradient) and torch.optim.AdamW (decay applied to the weight). */
export interface AdamSpec {
  readonly name: "adam" | "adamw";
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly amsgrad: boolean;
  readonly maximize: boolean;
}

export type OptimizerSpec = SgdSpec | AdamSpec;
export type OptimizerName = OptimizerSpec["name"];

export type SgdOptions = Partial<Omit<SgdSpec, "name">>;
export type AdamOptions = Partial<Omit<AdamSpec, "name">>;

/** SGD with PyTorch's defaults; the learning rate, which PyTorch demands there, defaults to its later 1e-3. */
export function sgd(options: SgdOptions = {}): SgdSpec {
  return check({
    name: "sgd",
    learningRate: options.learningRate ?? 1e-3,
    momentum: options.momentum ?? 0,
    dampening: options.dampening ?? 0,
    nesterov: options.nesterov ?? false,
    weightDecay: options.weightDecay ?? 0,
    maximize: options.maximize ?? false,
  });
}

/** Adam with PyTorch's defaults. */
export function adam(options: AdamOptions = {}): AdamSpec {
  return check(adamSpec("adam", options, 0));
}

/** AdamW with PyTorch's defaults: Adam's, and a weight decay of 0.01. */
export function adamw(options: AdamOptions = {}): AdamSpec {
  return check(adamSpec("adamw", options, 0.01));
}

function adamSpec(name: AdamSpec["name"], options: AdamOptions, weightDecay: number): AdamSpec {
  return {
    name,
    learningRate: options.learningRate ?? 1e-3,
    beta1: options.beta1 ?? 0.9,
    beta2: options.beta2 ?? 0.999,
    epsilon: options.epsilon ?? 1e-8,
    weightDecay: options.weightDecay ?? weightDecay,
    amsgrad: options.amsgrad ?? false,
    maximize: options.maximize ?? false,
  };
}

/**
 * Reads an optimizer from JSON that came from outside, options left out taking PyTorch's defaults.
 * @throws Error naming the optimizer and the option for an unknown name, option, type or an impossible value.
 */
export function parseOptimizerSpec(json: unknown): OptimizerSpec {
  if (typeof json !== "object" || json === null || !("name" in json))
    throw new Error('An optimizer is an object with a name, such as {"name": "sgd", "learningRate": 0.05}.');
  const { name, ...options } = json;
  switch (name) {
    case "sgd":
      return sgd(readOptions(sgd(), options));
    case "adam":
      return adam(readOptions(adam(), options));
    case "adamw":
      return adamw(readOptions(adamw(), options));
    default:
      throw new Error(`There is no optimizer ${JSON.stringify(name)}; there are sgd, adam and adamw.`);
  }
}

/** `defaults` with the options of `given`, of which each must be known and of its default's type. */
function readOptions<Spec extends OptimizerSpec>(defaults: Spec, given: object): Spec {
  const known = new Map<string, unknown>(Object.entries(defaults));
  for (const [key, value] of Object.entries(given)) {
    if (!known.has(key)) {
      const options = [...known.keys()].filter((option) => option !== "name");
      throw new Error(`The optimizer ${defaults.name} has no option ${key}; it has ${options.join(", ")}.`);
    }
    const expected = typeof known.get(key);
    if (typeof value !== expected)
      throw new Error(`The optimizer ${defaults.name}'s ${key} must be a ${expected}; it is ${JSON.stringify(value)}.`);
  }
  return { ...defaults, ...given };
}

function check<Spec extends OptimizerSpec>(spec: Spec): Spec {
  const demand = (key: string, value: number, holds: boolean, range: string) => {
    if (!holds) throw new Error(`The optimizer ${spec.name}'s ${key} must be ${range}; it is ${value}.`);
  };
  const atLeastZero = (key: string, value: number) =>
    demand(key, value, Number.isFinite(value) && value >= 0, "a number of at least 0");
  atLeastZero("learningRate", spec.learningRate);
  atLeastZero("weightDecay", spec.weightDecay);
  switch (spec.name) {
    case "sgd":
      atLeastZero("momentum", spec.momentum);
      demand("dampening", spec.dampening, Number.isFinite(spec.dampening), "a number");
      if (spec.nesterov && (spec.momentum === 0 || spec.dampening !== 0))
        throw new Error("The optimizer sgd's nesterov needs a momentum above 0 and a dampening of 0.");
      break;
    case "adam":
    case "adamw":
      demand("beta1", spec.beta1, spec.beta1 >= 0 && spec.beta1 < 1, "at least 0 and less than 1");
      demand("beta2", spec.beta2, spec.beta2 >= 0 && spec.beta2 < 1, "at least 0 and less than 1");
      // An epsilon that is 0 in float32 would turn the padding of flat buffers into 0/0.
      demand("epsilon", spec.epsilon, spec.epsilon < Infinity && spec.epsilon >= 1.2e-38, "at least 1.2e-38");
      break;
  }
  return spec;
}

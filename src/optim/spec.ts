/**
 * What an optimizer is, as plain JSON: it stands in a job's specification, travels to every member, and both the WGSL
 * and the CPU implementation are made from it (`updateRule.ts`). Options are PyTorch's, in camelCase.
 */

interface Common<Name extends string> {
  readonly name: Name;
  readonly learningRate: number;
  readonly weightDecay: number;
  readonly maximize: boolean;
}

interface Betas {
  readonly beta1: number;
  readonly beta2: number;
}

interface Epsilon {
  readonly epsilon: number;
}

/** Stochastic gradient descent, as torch.optim.SGD. */
export interface SgdSpec extends Common<"sgd"> {
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;
}

/** torch.optim.Adam (weight decay added to the gradient) and torch.optim.AdamW (decay applied to the weight). */
export interface AdamSpec extends Common<"adam" | "adamw">, Betas, Epsilon {
  readonly amsgrad: boolean;
}

/** torch.optim.NAdam. */
export interface NadamSpec extends Common<"nadam">, Betas, Epsilon {
  readonly momentumDecay: number;
}

/** torch.optim.RAdam. */
export interface RadamSpec extends Common<"radam">, Betas, Epsilon {}

/** torch.optim.Adamax. */
export interface AdamaxSpec extends Common<"adamax">, Betas, Epsilon {}

/** torch.optim.Adagrad. */
export interface AdagradSpec extends Common<"adagrad">, Epsilon {
  readonly learningRateDecay: number;
  readonly initialAccumulatorValue: number;
}

/** torch.optim.Adadelta. */
export interface AdadeltaSpec extends Common<"adadelta">, Epsilon {
  readonly rho: number;
}

/** torch.optim.RMSprop. */
export interface RmspropSpec extends Common<"rmsprop">, Epsilon {
  readonly alpha: number;
  readonly momentum: number;
  readonly centered: boolean;
}

/** Lion (Chen et al. 2023); its weight decay is applied to the weight. */
export interface LionSpec extends Common<"lion">, Betas {}

export type OptimizerSpec =
  | SgdSpec
  | AdamSpec
  | NadamSpec
  | RadamSpec
  | AdamaxSpec
  | AdagradSpec
  | AdadeltaSpec
  | RmspropSpec
  | LionSpec;
export type OptimizerName = OptimizerSpec["name"];

/**
 * Muon (Jordan et al. 2024), as torch.optim.Muon. It takes matrices as they are, so it isn't one of those that update
 * flat weights place by place.
 */
export interface MuonSpec extends Common<"muon">, Epsilon {
  readonly momentum: number;
  readonly nesterov: boolean;
  /** The quintic polynomial's a, b and c. */
  readonly nsCoefficients: readonly [a: number, b: number, c: number];
  readonly nsSteps: number;
  /** How the learning rate depends on a matrix's shape. */
  readonly adjustLr: "original" | "matchRmsAdamw";
}

/** What a schedule of the momentum sets: the momentum, or Adam's beta1; null where the optimizer has none. */
export function momentumOf(spec: OptimizerSpec | MuonSpec): number | null {
  if ("beta1" in spec) return spec.beta1;
  return "momentum" in spec && spec.momentum > 0 ? spec.momentum : null;
}

type Options<Spec> = Partial<Omit<Spec, "name">>;
export type SgdOptions = Options<SgdSpec>;
export type AdamOptions = Options<AdamSpec>;
export type NadamOptions = Options<NadamSpec>;
export type RadamOptions = Options<RadamSpec>;
export type AdamaxOptions = Options<AdamaxSpec>;
export type AdagradOptions = Options<AdagradSpec>;
export type AdadeltaOptions = Options<AdadeltaSpec>;
export type RmspropOptions = Options<RmspropSpec>;
export type LionOptions = Options<LionSpec>;
export type MuonOptions = Options<MuonSpec>;

const common = { learningRate: 1e-3, weightDecay: 0, maximize: false } as const;
const moments = { ...common, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 } as const;

/** PyTorch's defaults; SGD's learning rate, which PyTorch demanded, is its later 1e-3. */
const defaults = {
  sgd: { ...common, name: "sgd", momentum: 0, dampening: 0, nesterov: false },
  adam: { ...moments, name: "adam", amsgrad: false },
  adamw: { ...moments, name: "adamw", weightDecay: 0.01, amsgrad: false },
  nadam: { ...moments, name: "nadam", learningRate: 2e-3, momentumDecay: 4e-3 },
  radam: { ...moments, name: "radam" },
  adamax: { ...moments, name: "adamax", learningRate: 2e-3 },
  adagrad: {
    ...common,
    name: "adagrad",
    learningRate: 0.01,
    epsilon: 1e-10,
    learningRateDecay: 0,
    initialAccumulatorValue: 0,
  },
  adadelta: { ...common, name: "adadelta", learningRate: 1, rho: 0.9, epsilon: 1e-6 },
  rmsprop: {
    ...common,
    name: "rmsprop",
    learningRate: 0.01,
    alpha: 0.99,
    epsilon: 1e-8,
    momentum: 0,
    centered: false,
  },
  lion: { ...common, name: "lion", learningRate: 1e-4, beta1: 0.9, beta2: 0.99 },
} as const satisfies Record<OptimizerName, OptimizerSpec>;

const muonDefaults: MuonSpec = {
  ...common,
  name: "muon",
  weightDecay: 0.1,
  momentum: 0.95,
  nesterov: true,
  nsCoefficients: [3.4445, -4.775, 2.0315],
  epsilon: 1e-7,
  nsSteps: 5,
  adjustLr: "original",
};

export const optimizerNames = Object.keys(defaults) as readonly OptimizerName[];

export const sgd = (options: SgdOptions = {}): SgdSpec => check({ ...defaults.sgd, ...options });
export const adam = (options: AdamOptions = {}): AdamSpec => check({ ...defaults.adam, ...options });
export const adamw = (options: AdamOptions = {}): AdamSpec => check({ ...defaults.adamw, ...options });
export const nadam = (options: NadamOptions = {}): NadamSpec => check({ ...defaults.nadam, ...options });
export const radam = (options: RadamOptions = {}): RadamSpec => check({ ...defaults.radam, ...options });
export const adamax = (options: AdamaxOptions = {}): AdamaxSpec => check({ ...defaults.adamax, ...options });
export const adagrad = (options: AdagradOptions = {}): AdagradSpec => check({ ...defaults.adagrad, ...options });
export const adadelta = (options: AdadeltaOptions = {}): AdadeltaSpec => check({ ...defaults.adadelta, ...options });
export const rmsprop = (options: RmspropOptions = {}): RmspropSpec => check({ ...defaults.rmsprop, ...options });
export const lion = (options: LionOptions = {}): LionSpec => check({ ...defaults.lion, ...options });
export const muon = (options: MuonOptions = {}): MuonSpec => check({ ...muonDefaults, ...options });

/**
 * Reads an optimizer from JSON that came from outside, options left out taking PyTorch's defaults.
 * @throws Error naming the optimizer and the option for an unknown name, option, type or an impossible value.
 */
export function parseOptimizerSpec(json: unknown): OptimizerSpec {
  if (typeof json !== "object" || json === null || !("name" in json))
    throw new Error('An optimizer is an object with a name, such as {"name": "sgd", "learningRate": 0.05}.');
  const { name, ...options } = json;
  const known = optimizerNames.find((candidate) => candidate === name);
  if (!known)
    throw new Error(
      `There is no optimizer ${JSON.stringify(name)}; there are ${optimizerNames.slice(0, -1).join(", ")} and ${optimizerNames.at(-1)}.`,
    );
  return check(readOptions<OptimizerSpec>(defaults[known], options));
}

/** `spec` with the options of `given`, of which each must be known and of its default's type. */
function readOptions<Spec extends OptimizerSpec>(spec: Spec, given: object): Spec {
  const known = new Map<string, unknown>(Object.entries(spec));
  for (const [key, value] of Object.entries(given)) {
    if (!known.has(key)) {
      const options = [...known.keys()].filter((option) => option !== "name");
      throw new Error(`The optimizer ${spec.name} has no option ${key}; it has ${options.join(", ")}.`);
    }
    const expected = typeof known.get(key);
    if (typeof value !== expected)
      throw new Error(`The optimizer ${spec.name}'s ${key} must be a ${expected}; it is ${JSON.stringify(value)}.`);
  }
  return { ...spec, ...given };
}

type Range = readonly [holds: (value: number) => boolean, text: string];
const atLeastZero: Range = [(value) => value >= 0 && value < Infinity, "a number of at least 0"];
const part: Range = [(value) => value >= 0 && value < 1, "at least 0 and less than 1"];

/** What an option may be, whichever optimizer has it. */
const ranges: Readonly<Record<string, Range>> = {
  learningRate: atLeastZero,
  weightDecay: atLeastZero,
  momentum: atLeastZero,
  dampening: [Number.isFinite, "a number"],
  beta1: part,
  beta2: part,
  // An epsilon that is 0 in float32 would turn the padding of flat buffers into 0/0.
  epsilon: [(value) => value < Infinity && value >= 1.2e-38, "at least 1.2e-38"],
  momentumDecay: atLeastZero,
  learningRateDecay: atLeastZero,
  nsSteps: [(value) => Number.isInteger(value) && value > 0 && value < 100, "a count below 100"],
  initialAccumulatorValue: atLeastZero,
  rho: [(value) => value >= 0 && value <= 1, "from 0 to 1"],
  alpha: [(value) => value >= 0 && value <= 1, "from 0 to 1"],
};

function check<Spec extends OptimizerSpec | MuonSpec>(spec: Spec): Spec {
  for (const [key, value] of Object.entries(spec)) {
    const range = ranges[key];
    if (range && !range[0](value))
      throw new Error(`The optimizer ${spec.name}'s ${key} must be ${range[1]}; it is ${value}.`);
  }
  if (spec.name === "sgd" && spec.nesterov && (spec.momentum === 0 || spec.dampening !== 0))
    throw new Error("The optimizer sgd's nesterov needs a momentum above 0 and a dampening of 0.");
  return spec;
}

import { type OptimizerSpec, parseOptimizerSpec, sgd } from "../optim/spec";

export const recipeNames = ["mnist"] as const;
export const modelNames = ["cnn", "mlp"] as const;
export type RecipeName = (typeof recipeNames)[number];
export type ModelName = (typeof modelNames)[number];

/** Everything that decides a job's loss curve; plain JSON. */
export interface JobSpec {
  readonly version: 1;
  readonly recipe: RecipeName;
  readonly model: ModelName;
  /** Samples of a global batch, shared out among the members. */
  readonly batch: number;
  readonly steps: number;
  /** An unsigned 32-bit integer. */
  readonly seed: number;
  readonly optimizer: OptimizerSpec;
  /** Validate after every so many steps, and at the end; 0 validates at the end only. */
  readonly validateEvery: number;
}

/** What every member agrees on, and what the handshake proves: its SHA-256 is part of each proof. */
export interface Manifest {
  readonly protocol: 1;
  readonly job: string;
  /** The name of whoever made the job, as shown to people that open the link. */
  readonly maker: string;
  readonly spec: JobSpec;
  /** Float32 elements of the flat weights, padding included. No received length may exceed what follows from it. */
  readonly elements: number;
}

/** The whole numbers of a specification with the least and the most that each may be. */
export const specBounds = {
  batch: [1, 8192],
  steps: [1, 1_000_000],
  seed: [0, 0xffff_ffff],
  validateEvery: [0, 1_000_000],
} as const;

/** The most float32 elements that a manifest may announce: 1 GiB of weights. */
export const maxElements = 2 ** 28;

/** What suits a model of the MNIST recipe. The CNN's batch is large enough that a second GPU helps. */
export function defaultSpec(model: ModelName): JobSpec {
  const common = { version: 1, recipe: "mnist", seed: 1 } as const;
  const optimizer = sgd({ learningRate: 0.05, momentum: 0.9 });
  switch (model) {
    case "cnn":
      return { ...common, model, batch: 512, steps: 400, optimizer, validateEvery: 50 };
    case "mlp":
      return { ...common, model, batch: 128, steps: 468, optimizer, validateEvery: 50 };
  }
}

/**
 * Reads a specification from JSON that came from outside. What is left out takes the model's default.
 * @throws Error with a sentence for the first value that can't be.
 */
export function parseJobSpec(json: unknown): JobSpec {
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new Error('A job is an object such as {"recipe": "mnist", "model": "cnn", "steps": 400}.');
  const given = new Map<string, unknown>(Object.entries(json));
  const version = given.get("version") ?? 1;
  if (version !== 1) throw new Error(`The job's version must be 1; it is ${shown(version)}.`);
  const recipe = choice("recipe", given.get("recipe") ?? "mnist", recipeNames);
  const model = choice("model", given.get("model") ?? "cnn", modelNames);
  const defaults = defaultSpec(model);
  for (const key of given.keys())
    if (!(key in defaults))
      throw new Error(`A job has no ${shown(key)}; it has ${Object.keys(defaults).sort().join(", ")}.`);
  const whole = (key: keyof typeof specBounds): number => {
    const value = given.get(key) ?? defaults[key];
    const [least, most] = specBounds[key];
    if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
      throw new Error(`The job's ${key} must be a whole number from ${least} to ${most}; it is ${shown(value)}.`);
    return value;
  };
  return {
    version,
    recipe,
    model,
    batch: whole("batch"),
    steps: whole("steps"),
    seed: whole("seed"),
    optimizer: parseOptimizerSpec(given.get("optimizer") ?? defaults.optimizer),
    validateEvery: whole("validateEvery"),
  };
}

function choice<Name extends string>(key: string, value: unknown, names: readonly Name[]): Name {
  const name = names.find((candidate) => candidate === value);
  if (name === undefined)
    throw new Error(`The job's ${key} must be one of ${names.join(", ")}; it is ${shown(value)}.`);
  return name;
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 100) ?? String(value);
}

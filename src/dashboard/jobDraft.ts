import { messageOf } from "../base/messageOf";
import { defaultSpec, type JobSpec, type ModelName, parseJobSpec } from "../job/spec";

/** The optimizers that the form has fields for. */
export type OptimizerName = Extract<JobSpec["optimizer"]["name"], "sgd" | "adam" | "adamw">;

/** The fields that hold a number; each is text while it is being written. */
export const numberFields = [
  "batch",
  "steps",
  "learningRate",
  "seed",
  "validateEvery",
  "momentum",
  "beta1",
  "beta2",
  "epsilon",
  "weightDecay",
] as const;
export type NumberField = (typeof numberFields)[number];

/** A job's form as it stands, finished or not. */
export interface JobDraft {
  readonly model: ModelName;
  readonly optimizer: OptimizerName;
  readonly nesterov: boolean;
  readonly numbers: Readonly<Record<NumberField, string>>;
}

/** What is wrong, a sentence for each field; `form` for what no single field is to blame for. */
export type DraftErrors = Partial<Record<NumberField | "form", string>>;

export type DraftReading =
  | { readonly kind: "valid"; readonly spec: JobSpec }
  | { readonly kind: "invalid"; readonly errors: DraftErrors };

export const fieldLabels: Readonly<Record<NumberField, string>> = {
  batch: "Batch size",
  steps: "Steps",
  learningRate: "Learning rate",
  seed: "Seed",
  validateEvery: "Steps between validations",
  momentum: "Momentum",
  beta1: "Beta 1",
  beta2: "Beta 2",
  epsilon: "Epsilon",
  weightDecay: "Weight decay",
};

/** The optimizer options that a person can set, by optimizer; the others keep PyTorch's defaults. */
export const optimizerFields: Readonly<Record<OptimizerName, readonly NumberField[]>> = {
  sgd: ["momentum", "weightDecay"],
  adam: ["beta1", "beta2", "epsilon", "weightDecay"],
  adamw: ["beta1", "beta2", "epsilon", "weightDecay"],
};

/** What suits the recipes where the optimizer isn't the one that their defaults use. */
const usualOptions: Readonly<Record<OptimizerName, object>> = {
  sgd: { learningRate: 0.05, momentum: 0.9 },
  adam: { learningRate: 1e-3 },
  adamw: { learningRate: 1e-3 },
};

const jobFields = ["batch", "steps", "seed", "validateEvery"] as const;

/** A model's form filled with its defaults, for the optimizer given or the default one. */
export function draftFor(model: ModelName, optimizer?: OptimizerName): JobDraft {
  const usual = defaultSpec(model);
  const spec =
    optimizer === undefined || optimizer === usual.optimizer.name
      ? usual
      : parseJobSpec({ ...usual, optimizer: { name: optimizer, ...usualOptions[optimizer] } });
  const options = spec.optimizer;
  if (options.name !== "sgd" && options.name !== "adam" && options.name !== "adamw")
    throw new Error(`The form has no fields for the optimizer ${options.name}.`);
  const isSgd = options.name === "sgd";
  const values: Record<NumberField, number> = {
    batch: spec.batch,
    steps: spec.steps,
    seed: spec.seed,
    validateEvery: spec.validateEvery,
    learningRate: options.learningRate,
    weightDecay: options.weightDecay,
    momentum: isSgd ? options.momentum : 0,
    beta1: isSgd ? 0 : options.beta1,
    beta2: isSgd ? 0 : options.beta2,
    epsilon: isSgd ? 0 : options.epsilon,
  };
  const numbers = { ...emptyNumbers };
  for (const field of numberFields) numbers[field] = String(values[field]);
  return { model, optimizer: options.name, nesterov: isSgd && options.nesterov, numbers };
}

const emptyNumbers: Record<NumberField, string> = {
  batch: "",
  steps: "",
  learningRate: "",
  seed: "",
  validateEvery: "",
  momentum: "",
  beta1: "",
  beta2: "",
  epsilon: "",
  weightDecay: "",
};

/** The draft for another model: its defaults, with the optimizer, the seed and this tab's other choices kept. */
export function withModel(draft: JobDraft, model: ModelName): JobDraft {
  const next = draftFor(model);
  return { ...next, numbers: { ...next.numbers, seed: draft.numbers.seed } };
}

/** The draft for another optimizer, with that optimizer's usual options. */
export function withOptimizer(draft: JobDraft, optimizer: OptimizerName): JobDraft {
  const next = draftFor(draft.model, optimizer);
  const numbers = { ...next.numbers };
  for (const field of jobFields) numbers[field] = draft.numbers[field];
  return { ...next, numbers };
}

/** The fields that count for this draft. */
export const fieldsOf = (draft: JobDraft): readonly NumberField[] => [
  ...jobFields,
  "learningRate",
  ...optimizerFields[draft.optimizer],
];

/** Checks each field by itself, so that a sentence stands where the mistake is, and then the whole. */
export function readDraft(draft: JobDraft): DraftReading {
  const errors: DraftErrors = {};
  const sound = draftFor(draft.model, draft.optimizer);
  for (const field of fieldsOf(draft)) {
    const text = draft.numbers[field].trim();
    const value = text === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(value)) {
      errors[field] = `${fieldLabels[field]} must be a number.`;
      continue;
    }
    const problem = problemWith({ ...sound, numbers: { ...sound.numbers, [field]: text } });
    if (problem !== null) errors[field] = problem;
  }
  if (Object.keys(errors).length > 0) return { kind: "invalid", errors };
  try {
    return { kind: "valid", spec: parseJobSpec(toJson(draft)) };
  } catch (error) {
    return { kind: "invalid", errors: { form: messageOf(error) } };
  }
}

function problemWith(draft: JobDraft): string | null {
  try {
    parseJobSpec(toJson(draft));
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The job as JSON, as a file or another program would give it. */
function toJson(draft: JobDraft): unknown {
  const number = (field: NumberField) => Number(draft.numbers[field]);
  const optimizer: Record<string, string | number | boolean> = {
    name: draft.optimizer,
    learningRate: number("learningRate"),
  };
  for (const field of optimizerFields[draft.optimizer]) optimizer[field] = number(field);
  if (draft.optimizer === "sgd") optimizer.nesterov = draft.nesterov;
  const job = Object.fromEntries(jobFields.map((field) => [field, number(field)]));
  return { version: 1, recipe: "mnist", model: draft.model, ...job, optimizer };
}

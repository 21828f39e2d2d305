import { describe, expect, test } from "vitest";
import { defaultSpec } from "../job/spec";
import { draftFor, type JobDraft, type NumberField, readDraft, withModel, withOptimizer } from "./jobDraft";

const changed = (draft: JobDraft, numbers: Partial<Record<NumberField, string>>): JobDraft => ({
  ...draft,
  numbers: { ...draft.numbers, ...numbers },
});

describe("readDraft", () => {
  test.each(["cnn", "mlp"] as const)("the %s form as it opens is the model's default job", (model) => {
    expect(readDraft(draftFor(model))).toEqual({ kind: "valid", spec: defaultSpec(model) });
  });

  test("numbers may be written as people write them", () => {
    const reading = readDraft(changed(draftFor("mlp"), { learningRate: " 1e-2 ", steps: "20", seed: "7" }));
    expect(reading).toMatchObject({ kind: "valid", spec: { steps: 20, seed: 7, optimizer: { learningRate: 0.01 } } });
  });

  test("each mistake is a sentence at its own field, and only there", () => {
    const reading = readDraft(changed(draftFor("cnn"), { batch: "many", steps: "0", learningRate: "-1", seed: "" }));
    expect(reading).toEqual({
      kind: "invalid",
      errors: {
        batch: "Batch size must be a number.",
        steps: expect.stringMatching(/steps must be .*\.$/),
        learningRate: expect.stringMatching(/learningRate must be .*\.$/),
        seed: "Seed must be a number.",
      },
    });
  });

  test("what only the whole shows is said of the form", () => {
    const reading = readDraft(changed({ ...draftFor("cnn", "sgd"), nesterov: true }, { momentum: "0" }));
    expect(reading).toEqual({ kind: "invalid", errors: { form: expect.stringMatching(/nesterov/) } });
  });

  test("options of another optimizer don't count", () => {
    expect(readDraft(changed(draftFor("mlp", "adam"), { momentum: "nonsense" })).kind).toBe("valid");
  });
});

test("Adam and AdamW come with PyTorch's options", () => {
  const adam = readDraft(draftFor("mlp", "adam"));
  const adamw = readDraft(draftFor("mlp", "adamw"));
  const common = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, amsgrad: false, maximize: false };
  expect(adam).toMatchObject({ spec: { optimizer: { name: "adam", weightDecay: 0, ...common } } });
  expect(adamw).toMatchObject({ spec: { optimizer: { name: "adamw", weightDecay: 0.01, ...common } } });
});

test("another optimizer keeps the job's other numbers; another model brings its own but keeps the seed", () => {
  const draft = changed(draftFor("cnn"), { batch: "96", seed: "42", steps: "11" });
  expect(withOptimizer(draft, "adam").numbers).toMatchObject({ batch: "96", seed: "42", steps: "11" });
  expect(withModel(draft, "mlp")).toMatchObject({
    model: "mlp",
    numbers: { seed: "42", batch: String(defaultSpec("mlp").batch) },
  });
});

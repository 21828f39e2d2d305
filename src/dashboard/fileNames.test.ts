import { expect, test } from "vitest";
import { defaultSpec } from "../job/spec";
import { metricsFileName, weightsFileName } from "./fileNames";

test("downloads are named for recipe, model, job and step", () => {
  const spec = defaultSpec("mlp");
  expect(weightsFileName(spec, "3f9a12bc77aa", 400)).toBe("ringlet-mnist-mlp-3f9a12bc-step400.safetensors");
  expect(metricsFileName(spec, "a_b-c", 0)).toBe("ringlet-mnist-mlp-abc-step0.csv");
});

import { expect, test } from "vitest";
import { adam, adamw, parseOptimizerSpec, sgd } from "./spec";

test("the defaults are PyTorch's", () => {
  expect(sgd()).toEqual({
    name: "sgd",
    learningRate: 1e-3,
    momentum: 0,
    dampening: 0,
    nesterov: false,
    weightDecay: 0,
    maximize: false,
  });
  expect(adam()).toEqual({
    name: "adam",
    learningRate: 1e-3,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weightDecay: 0,
    amsgrad: false,
    maximize: false,
  });
  expect(adamw().weightDecay).toBe(0.01);
});

test("a specification survives JSON, and what it leaves out takes the default", () => {
  const spec = adamw({ learningRate: 0.002, amsgrad: true });
  expect(parseOptimizerSpec(JSON.parse(JSON.stringify(spec)))).toEqual(spec);
  expect(parseOptimizerSpec({ name: "sgd", momentum: 0.9 })).toEqual(sgd({ momentum: 0.9 }));
});

test.each([
  [null, "An optimizer is an object with a name"],
  [{ learningRate: 1 }, "An optimizer is an object with a name"],
  [{ name: "lbfgs" }, 'There is no optimizer "lbfgs"; there are sgd, adam, adamw, nadam'],
  [
    { name: "sgd", momentun: 0.9 },
    "The optimizer sgd has no option momentun; it has learningRate, weightDecay, maximize, momentum, dampening, nesterov.",
  ],
  [{ name: "sgd", learningRate: "0.1" }, 'The optimizer sgd\'s learningRate must be a number; it is "0.1".'],
  [{ name: "sgd", learningRate: -1 }, "The optimizer sgd's learningRate must be a number of at least 0; it is -1."],
  [{ name: "sgd", nesterov: true }, "nesterov needs a momentum above 0 and a dampening of 0"],
  [{ name: "adam", beta1: 1 }, "The optimizer adam's beta1 must be at least 0 and less than 1; it is 1."],
  [{ name: "adam", beta2: Number.NaN }, "The optimizer adam's beta2 must be at least 0 and less than 1; it is NaN."],
  [{ name: "adamw", epsilon: 0 }, "The optimizer adamw's epsilon must be at least 1.2e-38; it is 0."],
])("refuses %j with a sentence", (json, sentence) => {
  expect(() => parseOptimizerSpec(json)).toThrow(sentence);
});

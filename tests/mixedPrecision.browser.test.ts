import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../src/gpu";
import * as optim from "../src/optim/index";
import * as torch from "../src/tensor/index";
import { lastPlan } from "../src/tensor/runtime";
import { makeModel } from "./trainingModels";
import { batchesOf, readRun, readWeights, specOf, type TrainingRun } from "./trainingRuns";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

/**
 * Trains as a run of PyTorch's did, in a type. Gives its losses, and the bytes that a step's forward pass leaves to its
 * backward pass: those of all results in memory when the loss is computed.
 */
async function follow(run: TrainingRun, dtype: torch.NarrowType | "float32", steps = run.losses.length) {
  const model = makeModel(run.model, await readWeights(run.initial));
  const parameters = model.parameters();
  const optimizer = new optim.Optimizer([{ parameters, spec: specOf(run) }]);
  const batchAt = await batchesOf(run);
  const losses: Promise<number>[] = [];
  let heldBytes = 0;
  for (let step = 0; step < steps; step++) {
    const { input, target } = await batchAt(step);
    model.zeroGrad();
    const lossOf = () => torch.crossEntropy(model.forward(input), target);
    const loss = dtype === "float32" ? lossOf() : torch.autocast({ dtype }, lossOf);
    loss.backward();
    if (run.gradientNorms?.length) optim.clipGradNorm_(parameters, 1);
    for (const group of optimizer.groups) group.learningRate = run.learningRates?.[step] ?? specOf(run).learningRate;
    optimizer.step();
    losses.push(loss.item());
    if (step > 0) continue;
    await torch.flush();
    const lossStep = (await lastPlan())!.steps.find(({ kernel }) => kernel.shader.name.startsWith("crossEntropy"));
    heldBytes = lossStep!.held;
  }
  return { losses: await Promise.all(losses), heldBytes };
}

for (const name of ["cnn-adam", "gpt-adamw"])
  test(`${name} in float16 and bfloat16 reaches float32's loss within 1%, and holds at most 60% of the activations`, async () => {
    const run = await readRun(name);
    const single = await follow(run, "float32", 1);
    for (const dtype of ["float16", "bfloat16"] as const) {
      const { losses, heldBytes } = await follow(run, dtype);
      expect(heldBytes / single.heldBytes, `the activations in ${dtype}`).toBeLessThanOrEqual(0.6);
      for (const [step, loss] of losses.entries())
        expect(Math.abs(loss / run.losses[step]! - 1), `${dtype}, step ${step}`).toBeLessThan(0.01);
    }
  });

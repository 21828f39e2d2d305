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
 * The bytes of activations that the last step's forward pass left to its backward pass: those of all results in memory
 * when the loss was computed, but for copies of weights in the region's type.
 */
async function activationBytes(parameters: readonly torch.Tensor[]): Promise<number> {
  const { steps } = (await lastPlan())!;
  const at = steps.findIndex(({ kernel }) => kernel.shader.name.startsWith("crossEntropy"));
  const weights = parameters.filter(({ ndim }) => ndim > 1).map(({ shape }) => shape.join());
  const copies = steps
    .slice(0, at)
    .filter(
      ({ kernel, reads, bindings }) =>
        /^to b?float16$/.test(kernel.shader.name) &&
        bindings[0]?.place.kind === "leaf" &&
        weights.includes(reads[0]!.shape.join()),
    );
  return steps[at]!.held - copies.reduce((sum, { writes }) => sum + writes[0]!.bytes, 0);
}

/** Trains as a run of PyTorch's did, in a type. Gives its losses, and the bytes of a step's activations. */
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
    heldBytes = await activationBytes(parameters);
  }
  return { losses: await Promise.all(losses), heldBytes };
}

for (const name of ["cnn-adam", "gpt-adamw"]) {
  const run = await readRun(name);
  let inFloat32: ReturnType<typeof follow> | null = null;
  for (const dtype of ["float16", "bfloat16"] as const)
    test(`${name} in ${dtype} has float32's losses within 1%, and holds at most 60% of its activations`, async () => {
      inFloat32 ??= follow(run, "float32", 1);
      await inFloat32;
      const { losses, heldBytes } = await follow(run, dtype);
      for (const [step, loss] of losses.entries())
        expect(Math.abs(loss / run.losses[step]! - 1), `step ${step}`).toBeLessThan(0.01);
      expect(heldBytes / (await inFloat32).heldBytes).toBeLessThanOrEqual(0.6);
    });
}

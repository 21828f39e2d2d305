// Ringlet as a lone member of a job trains: flat parameters, the WGSL Adam, inputs overwritten in place.
import { requestDevice } from "../../src/gpu";
import { Conv2d, Flatten, GELU, Linear, MaxPool2d, type Module, ReLU, Sequential } from "../../src/nn";
import { FlatOptimizer } from "../../src/optim/flatOptimizer";
import { adam } from "../../src/optim/spec";
import * as torch from "../../src/tensor";
import type { Batch } from "./batches";
import type { Training } from "./engine";
import { Gpt } from "./ringletGpt";
import { adamOptions, type ParameterValues, valuesOf, type WorkloadName, workloads } from "./workloads";

export async function startRinglet(name: WorkloadName, initial: ParameterValues): Promise<Training> {
  const device = await requestDevice();
  torch.setDefaultDevice(device);
  const { input, rows, classes } = workloads[name];
  const { model, forward } = models[name]();
  const flat = new torch.FlatParameters(model.namedParameters());
  const weights = new Float32Array(flat.layout.length);
  for (const entry of flat.layout.entries) weights.set(valuesOf(initial, entry.name), entry.offset);
  flat.writeWeights(weights);
  const optimizer = new FlatOptimizer(adam(adamOptions), flat);
  const inputs = torch.zeros(input.shape, { dtype: input.kind === "digits" ? "float32" : "int32" }).keep();
  const labels = torch.zeros([rows], { dtype: "int32" }).keep();
  return {
    device: device.gpu,
    async step(batch: Batch) {
      inputs.write(batch.inputs);
      labels.write(batch.labels);
      flat.zeroGradients();
      const loss = torch.crossEntropy(torch.reshape(forward(inputs), [rows, classes]), labels);
      loss.backward();
      optimizer.step();
      return loss.item();
    },
  };
}

interface Model {
  readonly model: Module;
  readonly forward: (inputs: torch.Tensor) => torch.Tensor;
}

function sequential(...layers: Module[]): Model {
  const model = new Sequential(...layers);
  return { model, forward: (inputs) => model.forward(inputs) };
}

const models: Readonly<Record<WorkloadName, () => Model>> = {
  mlp: () =>
    sequential(new Flatten(), new Linear(784, 256), new ReLU(), new Linear(256, 128), new GELU(), new Linear(128, 10)),
  cnn: () =>
    sequential(
      new Conv2d(1, 16, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Conv2d(16, 32, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Flatten(),
      new Linear(32 * 7 * 7, 10),
    ),
  gpt: () => {
    const model = new Gpt();
    return { model, forward: (tokens) => model.forward(tokens) };
  },
};

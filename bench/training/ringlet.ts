// Ringlet as a lone member of a job trains: flat parameters, the WGSL Adam, inputs overwritten in place.
import { requestDevice } from "../../src/gpu";
import { Conv2d, Flatten, GELU, Linear, MaxPool2d, type Module, ReLU, Sequential } from "../../src/nn";
import { FlatOptimizer } from "../../src/optim/flatOptimizer";
import { adam } from "../../src/optim/spec";
import * as torch from "../../src/tensor";
import type { Training } from "./engine";
import type { Batch } from "./mnistBatches";
import { adamOptions, batchSize, type ParameterValues, valuesOf, type WorkloadName } from "./workloads";

export async function startRinglet(workload: WorkloadName, initial: ParameterValues): Promise<Training> {
  const device = await requestDevice();
  torch.setDefaultDevice(device);
  const model = models[workload]();
  const flat = new torch.FlatParameters(model.namedParameters());
  const weights = new Float32Array(flat.layout.length);
  for (const { name, offset } of flat.layout.entries) weights.set(valuesOf(initial, name), offset);
  flat.writeWeights(weights);
  const optimizer = new FlatOptimizer(adam(adamOptions), flat);
  const images = torch.zeros([batchSize, 1, 28, 28]).keep();
  const labels = torch.zeros([batchSize], { dtype: "int32" }).keep();
  return {
    device: device.gpu,
    async step(batch: Batch) {
      images.write(batch.images);
      labels.write(batch.labels);
      flat.zeroGradients();
      const loss = torch.crossEntropy(model.forward(images), labels);
      loss.backward();
      optimizer.step();
      return loss.item();
    },
  };
}

const models: Readonly<Record<WorkloadName, () => Module>> = {
  mlp: () =>
    new Sequential(
      new Flatten(),
      new Linear(784, 128),
      new ReLU(),
      new Linear(128, 64),
      new GELU(),
      new Linear(64, 10),
    ),
  cnn: () =>
    new Sequential(
      new Conv2d(1, 16, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Conv2d(16, 32, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Flatten(),
      new Linear(32 * 7 * 7, 10),
    ),
};

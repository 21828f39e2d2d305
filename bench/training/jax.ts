// jax-js in its fastest form: the whole step, Adam included, in one `jit`. Its optimizers aren't published, so Adam is
// written in its own operators, as optax has it.
import { defaultDevice, getWebGPUDevice, init, jit, lax, nn, numpy as np, tree, valueAndGrad } from "@jax-js/jax";
import type { Training } from "./engine";
import type { Batch } from "./mnistBatches";
import { adamOptions, type ParameterValues, valuesOf, type WorkloadName, workloads } from "./workloads";

type Parameters = { [name: string]: np.Array };
type Forward = (parameters: Parameters, images: np.Array) => np.Array;

export async function startJax(workload: WorkloadName, initial: ParameterValues): Promise<Training> {
  const devices = await init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("jax-js could not start its WebGPU backend.");
  defaultDevice("webgpu");

  const forward = models[workload];
  const loss = (parameters: Parameters, images: np.Array, labels: np.Array) => {
    const size = labels.shape[0]!;
    return nn
      .logSoftmax(forward(parameters, images))
      .mul(nn.oneHot(labels, 10))
      .sum()
      .mul(-1 / size);
  };
  const step = jit(
    (p: Parameters, m: Parameters, v: Parameters, count: np.Array, images: np.Array, labels: np.Array) => {
      const [value, gradients] = valueAndGrad(loss)(tree.ref(p), images, labels);
      const next = adam(p, m, v, count.add(1), gradients);
      return [value, next.parameters, next.first, next.second, next.count] as [
        np.Array,
        Parameters,
        Parameters,
        Parameters,
        np.Array,
      ];
    },
  );

  const specs = workloads[workload].parameters;
  const make = (values: (name: string, shape: number[]) => np.Array): Parameters =>
    Object.fromEntries(specs.map(({ name, shape }) => [name, values(name, [...shape])]));
  let parameters = make((name, shape) => np.array(valuesOf(initial, name), { shape }));
  let first = make((_, shape) => np.zeros(shape));
  let second = make((_, shape) => np.zeros(shape));
  let count = np.array(0, { dtype: np.float32 });
  return {
    device: getWebGPUDevice(),
    async step(batch: Batch) {
      const images = np.array(batch.images, { shape: [batch.size, 1, 28, 28] });
      const labels = np.array(batch.labels, { shape: [batch.size], dtype: np.int32 });
      let value: np.Array;
      [value, parameters, first, second, count] = step(parameters, first, second, count, images, labels);
      return (await value.data())[0]!;
    },
  };
}

const models: Readonly<Record<WorkloadName, Forward>> = {
  mlp(p, images) {
    const x = images.reshape([-1, 784]);
    const y = nn.relu(linear(x, p["1.weight"]!, p["1.bias"]!));
    const z = nn.gelu(linear(y, p["3.weight"]!, p["3.bias"]!), { approximate: false });
    return linear(z, p["5.weight"]!, p["5.bias"]!);
  },
  cnn(p, images) {
    const x = maxPool(nn.relu(convolution(images, p["0.weight"]!, p["0.bias"]!)));
    const y = maxPool(nn.relu(convolution(x, p["3.weight"]!, p["3.bias"]!)));
    return linear(y.reshape([-1, 1568]), p["7.weight"]!, p["7.bias"]!);
  },
};

const linear = (x: np.Array, weight: np.Array, bias: np.Array) => np.dot(x, weight.transpose()).add(bias);

const convolution = (x: np.Array, weight: np.Array, bias: np.Array) =>
  lax.convGeneralDilated(x, weight, [1, 1], "SAME").add(bias.reshape([-1, 1, 1]));

const maxPool = (x: np.Array) => lax.reduceWindow(x, np.max, [2, 2], [2, 2]);

/** One update; jax-js's arrays are owned by who is handed them, hence the `.ref` on every use but the last. */
function adam(p: Parameters, m: Parameters, v: Parameters, count: np.Array, gradients: Parameters) {
  const { learningRate, beta1, beta2, epsilon } = adamOptions;
  const correction = (beta: number) => np.subtract(1, np.exp(count.ref.mul(Math.log(beta))));
  const [firstCorrection, secondCorrection] = [correction(beta1), correction(beta2)];
  const [parameters, first, second]: [Parameters, Parameters, Parameters] = [{}, {}, {}];
  for (const [name, gradient] of Object.entries(gradients)) {
    const firstMoment = m[name]!.mul(beta1).add(gradient.ref.mul(1 - beta1));
    const secondMoment = v[name]!.mul(beta2).add(np.square(gradient).mul(1 - beta2));
    const denominator = np.sqrt(secondMoment.ref.div(secondCorrection.ref)).add(epsilon);
    const update = firstMoment.ref.div(firstCorrection.ref).div(denominator).mul(learningRate);
    parameters[name] = p[name]!.sub(update);
    first[name] = firstMoment;
    second[name] = secondMoment;
  }
  tree.dispose([firstCorrection, secondCorrection]);
  return { parameters, first, second, count };
}

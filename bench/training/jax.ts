// jax-js in its fastest form: the whole step, Adam included, in one `jit`. Its optimizers aren't published, so Adam is
// written in its own operators, as optax has it.
import { defaultDevice, getWebGPUDevice, init, jit, lax, nn, numpy as np, tree, valueAndGrad } from "@jax-js/jax";
import type { Batch } from "./batches";
import type { Training } from "./engine";
import { adamOptions, gptSizes, type ParameterValues, valuesOf, type WorkloadName, workloads } from "./workloads";

type Parameters = { [name: string]: np.Array };
type Forward = (parameters: Parameters, inputs: np.Array) => np.Array;

export async function startJax(name: WorkloadName, initial: ParameterValues): Promise<Training> {
  const devices = await init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("jax-js could not start its WebGPU backend.");
  defaultDevice("webgpu");

  const forward = models[name];
  const { input, rows, classes, parameters: specs } = workloads[name];
  const loss = (parameters: Parameters, inputs: np.Array, labels: np.Array) =>
    nn
      .logSoftmax(forward(parameters, inputs).reshape([rows, classes]))
      .mul(nn.oneHot(labels, classes))
      .sum()
      .mul(-1 / rows);
  const step = jit(
    (p: Parameters, m: Parameters, v: Parameters, count: np.Array, inputs: np.Array, labels: np.Array) => {
      const [value, gradients] = valueAndGrad(loss)(tree.ref(p), inputs, labels);
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

  const make = (values: (parameter: string, shape: number[]) => np.Array): Parameters =>
    Object.fromEntries(specs.map((spec) => [spec.name, values(spec.name, [...spec.shape])]));
  let parameters = make((parameter, shape) => np.array(valuesOf(initial, parameter), { shape }));
  let first = make((_, shape) => np.zeros(shape));
  let second = make((_, shape) => np.zeros(shape));
  let count = np.array(0, { dtype: np.float32 });
  return {
    device: getWebGPUDevice(),
    async step(batch: Batch) {
      const dtype = input.kind === "digits" ? np.float32 : np.int32;
      const inputs = np.array(batch.inputs, { shape: [...input.shape], dtype });
      const labels = np.array(batch.labels, { shape: [rows], dtype: np.int32 });
      let value: np.Array;
      [value, parameters, first, second, count] = step(parameters, first, second, count, inputs, labels);
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
  gpt(p, tokens) {
    const table = p["wte.weight"]!;
    let x = np.take(table.ref, tokens, 0).add(p["wpe.weight"]!);
    for (let layer = 0; layer < gptSizes.layers; layer += 1) x = block(p, `blocks.${layer}`, x);
    return np.dot(layerNorm(p, "ln_f", x), table.transpose());
  },
};

function block(p: Parameters, name: string, x: np.Array): np.Array {
  const { batch, places, heads, width } = gptSizes;
  const dense = (layer: string, of: np.Array) => linear(of, p[`${name}.${layer}.weight`]!, p[`${name}.${layer}.bias`]!);
  const all = dense("attn", layerNorm(p, `${name}.ln_1`, x.ref));
  const [q, k, v] = np.split(all, 3, -1).map((part) => part.reshape([batch, places, heads, width / heads]));
  const attended = nn.dotProductAttention(q!, k!, v!, { isCausal: true });
  const middle = x.add(dense("proj", attended.reshape([batch, places, width])));
  const hidden = nn.gelu(dense("fc", layerNorm(p, `${name}.ln_2`, middle.ref)), { approximate: false });
  return middle.add(dense("out", hidden));
}

const layerNorm = (p: Parameters, name: string, x: np.Array): np.Array =>
  nn.standardize(x, -1, { epsilon: 1e-5 }).mul(p[`${name}.weight`]!).add(p[`${name}.bias`]!);

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

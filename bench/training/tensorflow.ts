// TensorFlow.js as its guide recommends: variables, `optimizer.minimize` (which tidies), fused products, NHWC.
import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import type { Batch } from "./batches";
import type { Training } from "./engine";
import { adamOptions, gptSizes, type ParameterValues, valuesOf, type WorkloadName, workloads } from "./workloads";

/** From a batch, digits in NCHW or tokens, to logits for each row. */
type Forward = (inputs: tf.Tensor) => tf.Tensor2D;

export async function startTensorflow(name: WorkloadName, initial: ParameterValues): Promise<Training> {
  if (!(await tf.setBackend("webgpu"))) throw new Error("TensorFlow.js could not start its WebGPU backend.");
  await tf.ready();
  tf.enableProdMode();
  const { input, classes } = workloads[name];
  const forward = models[name](initial);
  const { learningRate, beta1, beta2, epsilon } = adamOptions;
  const optimizer = tf.train.adam(learningRate, beta1, beta2, epsilon);
  const backend = tf.backend();
  if (!(backend instanceof WebGPUBackend)) throw new Error("TensorFlow.js runs on another backend than WebGPU.");
  return {
    device: backend.device,
    async step(batch: Batch) {
      const inputs = tf.tensor(batch.inputs, [...input.shape], input.kind === "digits" ? "float32" : "int32");
      const labels = tf.tensor1d(batch.labels, "int32");
      const loss = optimizer.minimize(
        () => tf.losses.softmaxCrossEntropy<tf.Tensor, tf.Scalar>(tf.oneHot(labels, classes), forward(inputs)),
        true,
      );
      if (!loss) throw new Error("TensorFlow.js returned no loss.");
      const [value] = await loss.data();
      tf.dispose([inputs, labels, loss]);
      return value!;
    },
  };
}

const models: Readonly<Record<WorkloadName, (initial: ParameterValues) => Forward>> = {
  mlp(initial) {
    const [first, second, third] = [linear(initial, "1"), linear(initial, "3"), linear(initial, "5")];
    return (images) => {
      const flat = tf.reshape<tf.Rank.R2>(images, [-1, 784]);
      return third(gelu(second(tf.relu(first(flat)))));
    };
  },
  cnn(initial) {
    const [first, second] = [convolution(initial, "0", 1, 16), convolution(initial, "3", 16, 32)];
    const weight = valuesOf(initial, "7.weight");
    // PyTorch flattens channels first, NHWC last: the same weights in another order of inputs.
    const reordered = tf.tidy(() =>
      tf.reshape<tf.Rank.R2>(tf.transpose(tf.tensor4d(weight, [10, 32, 7, 7]), [2, 3, 1, 0]), [1568, 10]),
    );
    const last = linearFrom(reordered, valuesOf(initial, "7.bias"));
    return (images) => {
      // One channel lies first and last alike.
      const x = tf.maxPool(tf.relu(first(tf.reshape<tf.Rank.R4>(images, [-1, 28, 28, 1]))), 2, 2, "valid");
      const y = tf.maxPool(tf.relu(second(x)), 2, 2, "valid");
      return last(tf.reshape<tf.Rank.R2>(y, [y.shape[0], 1568]));
    };
  },
  gpt(initial) {
    const { layers, places, vocabulary, width } = gptSizes;
    const table = tf.variable(tf.tensor2d(valuesOf(initial, "wte.weight"), [vocabulary, width]));
    const positions = tf.variable(tf.tensor2d(valuesOf(initial, "wpe.weight"), [places, width]));
    const blocks = Array.from({ length: layers }, (_, i) => block(initial, `blocks.${i}`));
    const last = layerNorm(initial, "ln_f");
    return (tokens) => {
      const embedded = tf.add(tf.gather(table, tf.cast(tokens, "int32")), positions);
      const first = tf.reshape<tf.Rank.R2>(embedded, [-1, width]);
      const hidden = last(blocks.reduce((x, of) => of(x), first));
      return tf.matMul<tf.Tensor2D>(hidden, table, false, true);
    };
  },
};

/** Rows are tokens, [batch * places, width]. */
function block(initial: ParameterValues, name: string): (x: tf.Tensor2D) => tf.Tensor2D {
  const { batch, places, heads, width } = gptSizes;
  const depth = width / heads;
  const [firstNorm, secondNorm] = [layerNorm(initial, `${name}.ln_1`), layerNorm(initial, `${name}.ln_2`)];
  const [attn, proj] = [linear(initial, `${name}.attn`), linear(initial, `${name}.proj`)];
  const [fc, out] = [linear(initial, `${name}.fc`), linear(initial, `${name}.out`)];
  const mask = tf.tidy(() => {
    const isSeen = tf.linalg.bandPart(tf.ones<tf.Rank.R2>([places, places]), -1, 0);
    return tf.keep(tf.mul(tf.sub(1, isSeen), -1e9));
  });
  return (x) => {
    const all = tf.reshape(attn(firstNorm(x)), [batch, places, 3, heads, depth]);
    const [q, k, v] = tf.unstack(tf.transpose(all, [2, 0, 3, 1, 4]));
    const scores = tf.add(tf.mul(tf.matMul(q!, k!, false, true), depth ** -0.5), mask);
    const attended = tf.transpose(tf.matMul(tf.softmax(scores), v!), [0, 2, 1, 3]);
    const middle = tf.add<tf.Tensor2D>(x, proj(tf.reshape<tf.Rank.R2>(attended, [batch * places, width])));
    return tf.add<tf.Tensor2D>(middle, out(gelu(fc(secondNorm(middle)))));
  };
}

function layerNorm(initial: ParameterValues, name: string): (x: tf.Tensor2D) => tf.Tensor2D {
  const [weight, bias] = [`${name}.weight`, `${name}.bias`].map((of) =>
    tf.variable(tf.tensor1d(valuesOf(initial, of))),
  );
  return (x) => {
    const { mean, variance } = tf.moments(x, -1, true);
    const normalized = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
    return tf.add<tf.Tensor2D>(tf.mul(normalized, weight!), bias!);
  };
}

function linear(initial: ParameterValues, name: string): (x: tf.Tensor2D) => tf.Tensor2D {
  const bias = valuesOf(initial, `${name}.bias`);
  const weight = valuesOf(initial, `${name}.weight`);
  const inputs = weight.length / bias.length;
  return linearFrom(
    tf.tidy(() => tf.transpose(tf.tensor2d(weight, [bias.length, inputs]))),
    bias,
  );
}

function linearFrom(weight: tf.Tensor2D, bias: Float32Array): (x: tf.Tensor2D) => tf.Tensor2D {
  const [w, b] = [tf.variable(weight), tf.variable(tf.tensor1d(bias))];
  return (x) => tf.reshape<tf.Rank.R2>(tf.fused.matMul({ a: x, b: w, bias: b }), [x.shape[0], bias.length]);
}

function convolution(initial: ParameterValues, name: string, inputs: number, outputs: number) {
  const weight = tf.tidy(() =>
    tf.transpose(tf.tensor4d(valuesOf(initial, `${name}.weight`), [outputs, inputs, 3, 3]), [2, 3, 1, 0]),
  );
  const [filter, bias] = [tf.variable(weight), tf.variable(tf.tensor1d(valuesOf(initial, `${name}.bias`)))];
  return (x: tf.Tensor4D) => tf.fused.conv2d({ x, filter, bias, strides: 1, pad: "same" });
}

const gelu = (x: tf.Tensor2D) => tf.mul<tf.Tensor2D>(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1));

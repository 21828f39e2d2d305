// TensorFlow.js as its guide recommends: variables, `optimizer.minimize` (which tidies), fused products, NHWC.
import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import type { Training } from "./engine";
import type { Batch } from "./mnistBatches";
import { adamOptions, type ParameterValues, valuesOf, type WorkloadName } from "./workloads";

type Forward = (images: tf.Tensor4D) => tf.Tensor2D;

export async function startTensorflow(workload: WorkloadName, initial: ParameterValues): Promise<Training> {
  if (!(await tf.setBackend("webgpu"))) throw new Error("TensorFlow.js could not start its WebGPU backend.");
  await tf.ready();
  tf.enableProdMode();
  const forward = models[workload](initial);
  const { learningRate, beta1, beta2, epsilon } = adamOptions;
  const optimizer = tf.train.adam(learningRate, beta1, beta2, epsilon);
  const backend = tf.backend();
  if (!(backend instanceof WebGPUBackend)) throw new Error("TensorFlow.js runs on another backend than WebGPU.");
  return {
    device: backend.device,
    async step(batch: Batch) {
      const images = tf.tensor4d(batch.images, [batch.size, 28, 28, 1]);
      const labels = tf.tensor1d(batch.labels, "int32");
      const loss = optimizer.minimize(
        () => tf.losses.softmaxCrossEntropy<tf.Tensor, tf.Scalar>(tf.oneHot(labels, 10), forward(images)),
        true,
      );
      if (!loss) throw new Error("TensorFlow.js returned no loss.");
      const [value] = await loss.data();
      tf.dispose([images, labels, loss]);
      return value!;
    },
  };
}

const models: Readonly<Record<WorkloadName, (initial: ParameterValues) => Forward>> = {
  mlp(initial) {
    const [first, second, third] = [linear(initial, "1"), linear(initial, "3"), linear(initial, "5")];
    return (images) => {
      const flat = tf.reshape<tf.Rank.R2>(images, [images.shape[0], 784]);
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
      const x = tf.maxPool(tf.relu(first(images)), 2, 2, "valid");
      const y = tf.maxPool(tf.relu(second(x)), 2, 2, "valid");
      return last(tf.reshape<tf.Rank.R2>(y, [y.shape[0], 1568]));
    };
  },
};

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

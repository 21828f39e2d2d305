import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import { type Inputs, joined, type OperatorEngine } from "./engine";
import { type Convolution, inputShapes, type Operation } from "./rows";

export async function startTensorflow(): Promise<OperatorEngine> {
  if (!(await tf.setBackend("webgpu"))) throw new Error("TensorFlow.js could not start its WebGPU backend.");
  await tf.ready();
  tf.enableProdMode();
  const backend = tf.backend();
  if (!(backend instanceof WebGPUBackend)) throw new Error("TensorFlow.js runs on another backend than WebGPU.");
  return {
    device: backend.device,
    prepare(operation: Operation, inputs: Inputs) {
      const tensors = inputShapes(operation).map((shape, i) =>
        tf.tidy(() => inOwnLayout(operation, i, tf.tensor(inputs[i]!, [...shape]))),
      );
      const compute = computation(operation);
      let results: tf.Tensor[] = [];
      return {
        run() {
          tf.dispose(results);
          results = tf.tidy(() => compute(...tensors));
          backend.ensureCommandEncoderReady();
          backend.endComputePassEncoder();
          backend.submitQueue();
        },
        async values() {
          const ordered = results.map((result) => tf.tidy(() => inCommonLayout(operation, result)));
          const values = await Promise.all(ordered.map((result) => result.data()));
          return joined(values);
        },
        dispose: () => tf.dispose([results, tensors]),
      };
    },
  };
}

/** Images are channels last in TensorFlow.js, and kernels [rows, columns, in, out]. */
function inOwnLayout(operation: Operation, index: number, tensor: tf.Tensor): tf.Tensor {
  if (operation.kind !== "convolution") return tensor;
  return tf.transpose(tensor, index === 1 ? [2, 3, 1, 0] : [0, 2, 3, 1]);
}

function inCommonLayout(operation: Operation, tensor: tf.Tensor): tf.Tensor {
  if (operation.kind !== "convolution") return tensor;
  return tf.transpose(tensor, operation.pass === "weightGradient" ? [3, 2, 0, 1] : [0, 3, 1, 2]);
}

type Compute = (...inputs: tf.Tensor[]) => tf.Tensor[];

function computation(operation: Operation): Compute {
  switch (operation.kind) {
    case "matmul": {
      const { layout } = operation;
      return (a, b) => [tf.matMul(a!, b!, layout[0] === "T", layout[1] === "T")];
    }
    case "softmax":
      return (x) => [tf.softmax(x!)];
    case "layerNorm":
      return operation.pass === "forward"
        ? (x, weight, bias) => [layerNorm(x!, weight!, bias!)]
        : (x, weight, bias, dy) => tf.grads(layerNorm)([x!, weight!, bias!], dy);
    case "gelu":
      return (x) => [tf.mul(tf.mul(x!, 0.5), tf.add(tf.erf(tf.mul(x!, Math.SQRT1_2)), 1))];
    case "sum":
      return (x) => [tf.sum(x!)];
    case "convolution":
      return convolution(operation);
    case "attention": {
      const attend = attention(operation.length, operation.width);
      return operation.pass === "forward"
        ? (q, k, v) => [attend(q!, k!, v!)]
        : (q, k, v, dy) => tf.grads(attend)([q!, k!, v!], dy);
    }
  }
}

/** The kernels behind the gradients alone: `tf.grad` would compute the forward pass too. */
function convolution({ images, inputs, outputs, size, pass }: Convolution): Compute {
  const common = { strides: [1, 1], pad: "same", dataFormat: "NHWC" };
  switch (pass) {
    case "forward":
      return (x, filter) => kernel("Conv2D", { x: x!, filter: filter! }, { ...common, dilations: [1, 1] });
    case "inputGradient": {
      const attributes = { ...common, inputShape: [images, size, size, inputs] };
      return (_, filter, dy) => kernel("Conv2DBackpropInput", { dy: dy!, filter: filter! }, attributes);
    }
    case "weightGradient": {
      const attributes = { ...common, filterShape: [3, 3, inputs, outputs] };
      return (x, _, dy) => kernel("Conv2DBackpropFilter", { x: x!, dy: dy! }, attributes);
    }
  }
}

function kernel(name: string, inputs: tf.NamedTensorMap, attributes: tf.NamedAttrMap): tf.Tensor[] {
  const result = tf.engine().runKernel(name, inputs, attributes);
  return Array.isArray(result) ? result : [result];
}

function layerNorm(x: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor): tf.Tensor {
  const { mean, variance } = tf.moments(x, -1, true);
  const normalized = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
  return tf.add(tf.mul(normalized, weight), bias);
}

function attention(length: number, width: number): (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) => tf.Tensor {
  const mask = tf.tidy(() => {
    const isSeen = tf.linalg.bandPart(tf.ones<tf.Rank.R2>([length, length]), -1, 0);
    return tf.keep(tf.mul(tf.sub(1, isSeen), -1e9));
  });
  return (q, k, v) => {
    const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), width ** -0.5), mask);
    return tf.matMul(tf.softmax(scores), v);
  };
}

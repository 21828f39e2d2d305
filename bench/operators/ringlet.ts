import { requestDevice } from "../../src/gpu";
import type { Tensor } from "../../src/tensor";
import * as torch from "../../src/tensor";
import { type Inputs, joined, type OperatorEngine } from "./engine";
import { type Convolution, inputShapes, type Operation } from "./rows";

export async function startRinglet(): Promise<OperatorEngine> {
  const device = await requestDevice();
  torch.setDefaultDevice(device);
  return {
    device: device.gpu,
    prepare(operation: Operation, inputs: Inputs) {
      const tensors = inputShapes(operation).map((shape, i) => torch.tensor(inputs[i]!, { shape }));
      // What a loop would keep: its memory is the same each time, as a parameter's or a loss's is.
      let results: readonly Tensor[] = [];
      return {
        async run() {
          for (const result of results) release(result);
          results = compute(operation, tensors);
          for (const result of results) result.keep();
          await torch.flush();
        },
        values: async () => joined(await Promise.all(results.map((result) => result.data()))),
        dispose() {
          for (const result of results) release(result);
          for (const tensor of tensors) release(tensor);
        },
      };
    },
  };
}

/** Gives a tensor's buffer back now instead of when the tensor is collected. */
function release({ source }: Tensor): void {
  if (source.kind !== "recipe") source.storage?.memory.release();
}

function compute(operation: Operation, inputs: readonly Tensor[]): readonly Tensor[] {
  const [x, second, third, fourth] = inputs as readonly [Tensor, Tensor, Tensor, Tensor];
  switch (operation.kind) {
    case "matmul": {
      const { layout } = operation;
      return [torch.matmul(layout[0] === "T" ? torch.t(x) : x, layout[1] === "T" ? torch.t(second) : second)];
    }
    case "softmax":
      return [torch.softmax(x, -1)];
    case "layerNorm": {
      const normed = (input: Tensor, weight: Tensor, bias: Tensor) =>
        torch.layerNorm(input, [operation.columns], { weight, bias });
      if (operation.pass === "forward") return [normed(x, second, third)];
      return gradients([x, second, third], fourth, ([a, b, c]) => normed(a!, b!, c!));
    }
    case "gelu":
      return [torch.gelu(x)];
    case "sum":
      return [torch.sum(x)];
    case "convolution":
      return convolution(operation, x, second, third);
    case "attention": {
      const attend = (q: Tensor, k: Tensor, v: Tensor) => torch.scaledDotProductAttention(q, k, v, { isCausal: true });
      if (operation.pass === "forward") return [attend(x, second, third)];
      return gradients([x, second, third], fourth, ([q, k, v]) => attend(q!, k!, v!));
    }
  }
}

function convolution({ pass }: Convolution, x: Tensor, weight: Tensor, dy: Tensor): readonly Tensor[] {
  const convolve = (input: Tensor, kernel: Tensor) => torch.conv2d(input, kernel, null, { padding: 1 });
  switch (pass) {
    case "forward":
      return [convolve(x, weight)];
    case "inputGradient":
      return gradients([x], dy, ([of]) => convolve(of!, weight));
    case "weightGradient":
      return gradients([weight], dy, ([of]) => convolve(x, of!));
  }
}

/** The gradients of f(inputs) times `cotangent`. */
function gradients(inputs: readonly Tensor[], cotangent: Tensor, f: (inputs: readonly Tensor[]) => Tensor): Tensor[] {
  const leaves = inputs.map((input) => {
    const leaf = input.detach();
    leaf.requiresGrad = true;
    return leaf;
  });
  return torch.grad(f(leaves), leaves, { gradOutputs: [cotangent] }).map((gradient) => {
    if (!gradient) throw new Error("An input has no gradient.");
    return gradient;
  });
}

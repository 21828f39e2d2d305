import { blockUntilReady, defaultDevice, getWebGPUDevice, init, jit, lax, nn, numpy as np, vjp } from "@jax-js/jax";
import { type Inputs, joined, type OperatorEngine } from "./engine";
import { type Convolution, inputShapes, type Operation } from "./rows";

/** Arguments are owned by who is handed them. */
type Compute = (...inputs: np.Array[]) => np.Array[];

export async function startJax(): Promise<OperatorEngine> {
  const devices = await init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("jax-js could not start its WebGPU backend.");
  defaultDevice("webgpu");
  return {
    device: getWebGPUDevice(),
    prepare(operation: Operation, inputs: Inputs) {
      const arrays = inputShapes(operation).map((shape, i) => np.array(inputs[i]!, { shape: [...shape] }));
      const compute = jit(computation(operation));
      let results: np.Array[] = [];
      const drop = () => {
        for (const result of results.splice(0)) result.dispose();
      };
      return {
        async run() {
          drop();
          results = await blockUntilReady(compute(...arrays.map((array) => array.ref)));
        },
        values: async () => joined(await Promise.all(results.map((result) => result.ref.data()))),
        dispose() {
          drop();
          for (const array of arrays) array.dispose();
          compute.dispose();
        },
      };
    },
  };
}

function computation(operation: Operation): Compute {
  switch (operation.kind) {
    case "matmul": {
      const { layout } = operation;
      const turned = (isStoredTransposed: boolean, of: np.Array) => (isStoredTransposed ? of.transpose() : of);
      return (a, b) => [np.matmul(turned(layout[0] === "T", a!), turned(layout[1] === "T", b!))];
    }
    case "softmax":
      return (x) => [nn.softmax(x!)];
    case "layerNorm": {
      const normed = (x: np.Array, weight: np.Array, bias: np.Array) =>
        nn.standardize(x, -1, { epsilon: 1e-5 }).mul(weight).add(bias);
      if (operation.pass === "forward") return (x, weight, bias) => [normed(x!, weight!, bias!)];
      return (x, weight, bias, dy) => gradients(normed, [x!, weight!, bias!], dy!);
    }
    case "gelu":
      return (x) => [nn.gelu(x!, { approximate: false })];
    case "sum":
      return (x) => [x!.sum()];
    case "convolution":
      return convolution(operation);
    case "attention": {
      const swapped = (of: np.Array) => np.swapaxes(of, 1, 2);
      const attend = (q: np.Array, k: np.Array, v: np.Array) =>
        swapped(nn.dotProductAttention(swapped(q), swapped(k), swapped(v), { isCausal: true }));
      if (operation.pass === "forward") return (q, k, v) => [attend(q!, k!, v!)];
      return (q, k, v, dy) => gradients(attend, [q!, k!, v!], dy!);
    }
  }
}

function convolution({ pass }: Convolution): Compute {
  const convolve = (x: np.Array, weight: np.Array) => lax.convGeneralDilated(x, weight, [1, 1], "SAME");
  switch (pass) {
    case "forward":
      return (x, weight) => [convolve(x!, weight!)];
    case "inputGradient":
      return (x, weight, dy) => gradients((of: np.Array) => convolve(of, weight!), [x!], dy!);
    case "weightGradient":
      return (x, weight, dy) => gradients((of: np.Array) => convolve(x!, of), [weight!], dy!);
  }
}

/** The gradients of f(inputs) times `cotangent`. In a `jit`, what they don't need isn't computed. */
function gradients(f: (...inputs: np.Array[]) => np.Array, inputs: np.Array[], cotangent: np.Array): np.Array[] {
  const [value, back] = vjp(f, inputs);
  value.dispose();
  const result = back(cotangent);
  back.dispose();
  return [...result];
}

import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../src/gpu";
import * as torch from "../src/tensor/index";
import text from "./reference/extremes.json?raw";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

type Numbers = readonly (number | string)[];
type Answers = { readonly values: Numbers; readonly slopes: Numbers };
/** By PyTorch in float32, which overflows and cancels on its way, and in float64. */
type Reference = { readonly float32: Answers; readonly float64: Answers };
const { points, functions }: { points: Numbers; functions: Record<string, Reference> } = JSON.parse(text);

const number = (of: number | string): number => (typeof of === "number" ? of : Number(of.replace("inf", "Infinity")));

const other = torch.tensor([0.25]);
const none = { reduction: "none" } as const;
/** The other class's score is 0. */
const withZero = (x: torch.Tensor) => torch.stack([x, torch.zeros([x.numel])], 1);

const calls: Record<string, (x: torch.Tensor) => torch.Tensor> = {
  abs: torch.abs,
  acos: torch.acos,
  asin: torch.asin,
  atan: torch.atan,
  celu: (x) => torch.celu(x),
  clamp: (x) => torch.clamp(x, -1, 3),
  cos: torch.cos,
  cosh: torch.cosh,
  elu: (x) => torch.elu(x),
  erf: torch.erf,
  exp: torch.exp,
  expm1: torch.expm1,
  gelu: (x) => torch.gelu(x),
  geluTanh: (x) => torch.gelu(x, "tanh"),
  hardshrink: (x) => torch.hardshrink(x),
  hardsigmoid: torch.hardsigmoid,
  hardswish: torch.hardswish,
  hardtanh: (x) => torch.hardtanh(x),
  leakyRelu: (x) => torch.leakyRelu(x),
  log: torch.log,
  log1p: torch.log1p,
  log2: torch.log2,
  log10: torch.log10,
  logsigmoid: torch.logsigmoid,
  mish: torch.mish,
  pow3: (x) => torch.pow(x, 3),
  powHalf: (x) => torch.pow(x, 0.5),
  reciprocal: torch.reciprocal,
  relu: torch.relu,
  relu6: torch.relu6,
  rsqrt: torch.rsqrt,
  selu: torch.selu,
  sigmoid: torch.sigmoid,
  silu: torch.silu,
  sin: torch.sin,
  sinh: torch.sinh,
  softplus: (x) => torch.softplus(x),
  softshrink: (x) => torch.softshrink(x),
  softsign: torch.softsign,
  sqrt: torch.sqrt,
  square: torch.square,
  tanh: torch.tanh,
  tanhshrink: torch.tanhshrink,
  threshold: (x) => torch.threshold(x, 0.5, -2),
  logaddexp: (x) => torch.logaddexp(x, other),
  xlogy: (x) => torch.xlogy(other, x),
  hypot: (x) => torch.hypot(x, other),
  atan2: (x) => torch.atan2(x, other),
  binaryCrossEntropyWithLogits: (x) => torch.binaryCrossEntropyWithLogits(x, other.expand(x.numel), none),
  smoothL1Loss: (x) => torch.smoothL1Loss(x, other.expand(x.numel), none),
  huberLoss: (x) => torch.huberLoss(x, other.expand(x.numel), none),
  softMarginLoss: (x) => torch.softMarginLoss(x, torch.ones([x.numel]), none),
  crossEntropy: (x) => torch.crossEntropy(withZero(x), torch.zeros([x.numel], { dtype: "int32" }), none),
  softmax: (x) => torch.softmax(withZero(x), 1).select(1, 0),
  logsumexp: (x) => torch.logsumexp(withZero(x), 1),
};

/** WGSL's exp is right to 3 + 2|x| units in the last place: 180 at the ends of its range. */
const relative = 3e-5;
/** Below the normal numbers, GPUs may take everything for 0. */
const smallest = 2 ** -125;
/** A slope such as 1 - tanh(x)² is what rounding leaves of numbers near 1: 4 units in their last place. */
const ofSlopes = 2.4e-7;

function isClose(got: number, want: number, absolute: number): boolean {
  if (Object.is(got, want) || got === want) return true;
  return Math.abs(got - want) <= Math.max(absolute, relative * Math.abs(want));
}

/** What PyTorch's formula loses on its way in float32 and in float64 alike, with the right answer. */
const better: Record<string, number> = {
  // x min(max(x + 3, 0), 6) / 6 is minus infinity times 0 there; the function is 0 from -3 down.
  "hardswish(-inf)": 0,
  "hardswish'(-inf)": 0,
  // exp(x) - 1 is x for small x; this PyTorch's takes the difference.
  "celu(-1e-30)": -1e-30,
  "elu(-1e-30)": -1e-30,
  "selu(-1e-30)": -1.75809934e-30,
  "selu(-2.00000001e-38)": -3.516198699e-38,
  // log(1 + exp(-x)) is exp(-x) for large x.
  "softMarginLoss(30)": Math.exp(-30),
  "softMarginLoss(44)": Math.exp(-44),
  // The derivative of log(1 + exp(-x)) is -1 / (1 + exp(x)): -1 far down, where exp(-x) overflows.
  "softMarginLoss'(-inf)": -1,
  "softMarginLoss'(-1000)": -1,
  "softMarginLoss'(-10000000000)": -1,
  "softMarginLoss'(-3.00000001e+38)": -1,
};

test("values and slopes at every magnitude, at zeros, infinities and NaN are PyTorch's", async () => {
  expect(Object.keys(calls).sort()).toEqual(Object.keys(functions).sort());
  const problems: string[] = [];
  const results = Object.entries(calls).map(async ([name, call]) => {
    const x = torch.tensor(points.map(number), { requiresGrad: true });
    const y = call(x);
    torch.sum(y).backward();
    const [values, slopes] = await Promise.all([y.data(), x.grad!.data()]);
    const { float32, float64 } = functions[name]!;
    const check = (what: string, got: number, i: number, of: keyof Answers, absolute: number) => {
      const answers = [float32, float64].map((answer) => number(answer[of][i]!));
      const wanted = what in better ? [better[what]!] : answers;
      if (!wanted.some((want) => isClose(got, want, absolute)))
        problems.push(`${what} is ${got}, PyTorch's ${answers.join(", or by float64 ")}`);
    };
    for (const [i, point] of points.entries()) {
      if (point === "nan") {
        // Nothing is to be learnt from a slope there.
        if (!Number.isNaN(values[i])) problems.push(`${name}(nan) is ${values[i]}`);
        continue;
      }
      check(`${name}(${point})`, values[i]!, i, "values", smallest);
      check(`${name}'(${point})`, slopes[i]!, i, "slopes", ofSlopes);
    }
  });
  await Promise.all(results);
  expect(problems).toEqual([]);
});

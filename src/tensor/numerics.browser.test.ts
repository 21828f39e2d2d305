import { afterAll, expect, test } from "vitest";
import { PhiloxStream } from "../base/philox";
import { requestDevice } from "../gpu";
import {
  amax,
  amin,
  any,
  argmax,
  clamp,
  countNonzero,
  crossEntropy,
  cumsum,
  erf,
  exp,
  gelu,
  grad,
  isnan,
  layerNorm,
  logSoftmax,
  logsumexp,
  matmul,
  maximum,
  mean,
  median,
  mul,
  nansum,
  ones,
  pow,
  prod,
  rand,
  randn,
  relu,
  setDefaultDevice,
  sigmoid,
  softmax,
  std,
  sum,
  type Tensor,
  tanh,
  tensor,
  var_,
  vectorNorm,
  where,
  zeros,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;

test("softmax does not overflow or underflow", async () => {
  expect(await softmax(tensor([-1000, -1000]), 0).array()).toEqual([0.5, 0.5]);
  expect(await softmax(tensor([1000, 0]), 0).array()).toEqual([1, 0]);
  expect(await logSoftmax(tensor([1000, 0]), 0).array()).toEqual([0, -1000]);
  expect(await logsumexp(tensor([-infinity, 3]), 0).item()).toBe(3);
  expect(await logsumexp(tensor([-infinity, -infinity]), 0).item()).toBe(-infinity);
  expect(await crossEntropy(tensor([[1000, 0]]), tensor(new Int32Array([1]))).item()).toBe(1000);
});

test("a product over an inner size of zero is zeros, with gradients of the operands' shapes", async () => {
  const a = zeros([16, 0], { requiresGrad: true });
  const b = zeros([0, 16], { requiresGrad: true });
  const c = matmul(a, b);
  sum(c).backward();
  expect(await c.data()).toEqual(new Float32Array(256));
  expect([a.grad!.shape, b.grad!.shape]).toEqual([
    [16, 0],
    [0, 16],
  ]);
  expect(await a.grad!.data()).toHaveLength(0);
});

test("reductions of nothing are their identity, or a sentence where there is none", async () => {
  expect(await sum(zeros([0, 3]), 0).array()).toEqual([0, 0, 0]);
  expect(await mean(zeros([0])).item()).toBeNaN();
  expect(() => amax(zeros([0, 3]), 0)).toThrow(
    "amax: the input has shape [0, 3]; expected at least one element to reduce.",
  );
});

test("a batch of more products than a dispatch has workgroups in a dimension", async () => {
  const a = ones([500, 500, 4, 5]);
  const b = mul(ones([500, 500, 5, 6]), 2);
  const c = await matmul(a, b).data();
  expect(c).toHaveLength(500 * 500 * 24);
  expect(c.every((x) => x === 10)).toBe(true);
});

test("sums are accurate, and kernels over more than 65,535 workgroups complete", async () => {
  const n = 65_536 * 256 + 260;
  expect(await sum(ones([n])).item()).toBe(n);
  const third = Math.fround(1 / 3);
  const total = await sum(tensor(new Float32Array(2 ** 20).fill(third))).item();
  expect(Math.abs(total / (2 ** 20 * third) - 1)).toBeLessThan(1e-6);
});

test("minimum and maximum tell integers apart that a float16 could not, and pass NaN on", async () => {
  expect(await amin(tensor([32768, 32767])).item()).toBe(32767);
  expect(await amax(tensor([1, nan, 2])).item()).toBeNaN();
  expect(await amin(tensor([nan, 1, 2])).item()).toBeNaN();
  expect(await maximum(tensor([1, nan, 3]), tensor([nan, 1, 2])).array()).toEqual([nan, nan, 3]);
  expect(await argmax(tensor([3, 7, 7, -1])).item()).toBe(1);
  expect(await relu(tensor([nan, -infinity, infinity])).array()).toEqual([nan, 0, infinity]);
  expect(await clamp(tensor([nan, -infinity, infinity]), -1, 1).array()).toEqual([nan, -1, 1]);
});

test("saturating functions are exact at their ends and right near zero", async () => {
  expect(await tanh(tensor([44, 1000, -1000, infinity, -infinity, nan])).array()).toEqual([1, 1, -1, 1, -1, nan]);
  expect(await sigmoid(tensor([200, -200, infinity, -infinity])).array()).toEqual([1, 0, 1, 0]);
  expect(await erf(tensor([4, -30, infinity, -infinity, nan])).array()).toEqual([1, -1, 1, -1, nan]);
  expect(await gelu(tensor([-40, 40])).array()).toEqual([-0, 40]);
  const [small] = (await tanh(tensor([1e-5])).data()) as Float32Array;
  expect(small! / 1e-5).toBeCloseTo(1, 6);
});

test("(-3)^2 is 9 with gradient -6, and powers of zero and of negative numbers are PyTorch's", async () => {
  const x = tensor([-3], { requiresGrad: true });
  const y = pow(x, 2);
  sum(y).backward();
  expect(await y.array()).toEqual([9]);
  expect(await x.grad!.array()).toEqual([-6]);
  const bases = tensor([-2, -2, 0, 0, 0, -8, 4]);
  const powers = await pow(bases, tensor([3, -1, 0, 2, -1, 0.5, 0.5])).array();
  expect(powers).toEqual([-8, -0.5, 1, 0, infinity, nan, 2].map((v) => (Number.isNaN(v) ? nan : expect.closeTo(v, 5))));
});

test("NaN is found by its bits", async () => {
  const x = tensor([nan, 1, nan, 2]);
  expect(await where(isnan(x), 0, x).array()).toEqual([0, 1, 0, 2]);
});

test("one NaN makes what it goes into NaN, and nothing else", async () => {
  const x = tensor([
    [1, nan, 2],
    [1, 0, 2],
  ]);
  const perRow = {
    sum: sum(x, 1),
    mean: mean(x, 1),
    var: var_(x, 1),
    amax: amax(x, 1),
    logsumexp: logsumexp(x, 1),
    norm: vectorNorm(x, 2, 1),
    prod: prod(x, 1),
    std: std(x, 1),
    softmax: sum(softmax(x, 1), 1),
    softmaxFirst: softmax(x, 1).select(1, 0),
    logSoftmax: sum(logSoftmax(x, 1), 1),
    softmaxByVectors: softmax(x.repeat([1, 4]), 1).select(1, 0),
    logSoftmaxByVectors: logSoftmax(x.repeat([1, 4]), 1).select(1, 0),
    crossEntropy: crossEntropy(x, tensor(new Int32Array([0, 0])), { reduction: "none" }),
    matmul: matmul(x, ones([3])),
    layerNorm: sum(layerNorm(x, [3]), 1),
    cumsum: cumsum(x, 1).select(1, 2),
    median: median(x, 1).values,
  };
  const values = await Promise.all(Object.values(perRow).map((result) => result.data()));
  const found = Object.keys(perRow).map((name, i) => [name, ...[...values[i]!].map(Number.isNaN)]);
  expect(found).toEqual(Object.keys(perRow).map((name) => [name, true, false]));
  const [truths, missing, counted] = await Promise.all([any(x, 1).array(), nansum(x).item(), countNonzero(x).item()]);
  expect([truths, missing, counted]).toEqual([[1, 1], 6, 5]);
});

test("moments of numbers far from zero, and of long rows, are accurate", async () => {
  const length = 100_003;
  const values = Float32Array.from({ length }, (_, i) => 10_000 + ((i * 7919) % 101));
  const average = values.reduce((total, x) => total + x, 0) / length;
  const spread = values.reduce((total, x) => total + (x - average) ** 2, 0) / (length - 1);
  const x = tensor(values);
  const [gotMean, gotVar, gotStd] = await Promise.all([mean(x).item(), var_(x).item(), std(x).item()]);
  expect(Math.abs(gotMean / average - 1)).toBeLessThan(1e-6);
  expect(Math.abs(gotVar / spread - 1)).toBeLessThan(1e-4);
  expect(Math.abs(gotStd / Math.sqrt(spread) - 1)).toBeLessThan(1e-4);
});

test("a label that is no class makes the loss NaN", async () => {
  expect(await crossEntropy(tensor([[1, 2]]), tensor(new Int32Array([7]))).item()).toBeNaN();
});

/** The derivative by central differences in float64 of a function given for float64. */
const slope = (f: (x: number) => number, x: number): number => (f(x + 1e-4) - f(x - 1e-4)) / 2e-4;

test("GELU is right to 4 units in the last place of its input, also where it is nearly 0 or the input", async () => {
  const points = Float32Array.from({ length: 2000 }, (_, i) => (i - 1000) / 150);
  // erf(z) by its series, to 1e-10 up to |z| = 4.8.
  const exact = (x: number) => {
    const z = x / Math.SQRT2;
    let term = z;
    let total = z;
    for (let n = 1; n < 120; n++) {
      term *= -(z * z) / n;
      total += term / (2 * n + 1);
    }
    return 0.5 * x * (1 + (2 / Math.sqrt(Math.PI)) * total);
  };
  const values = await gelu(tensor(points)).data();
  for (const [i, x] of points.entries())
    expect(Math.abs(values[i]! - exact(x)), `gelu(${x})`).toBeLessThan(5e-7 * Math.max(0.5, Math.abs(x)));
});

test("GELU's first and second derivatives agree with differences, exact and approximate", async () => {
  const points = [-3, -1, -0.3, 0, 0.4, 1.2, 3];
  const erf64 = (x: number): number => {
    let term = x;
    let total = x;
    for (let n = 1; n < 60; n++) {
      term *= -(x * x) / n;
      total += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * total;
  };
  const exact = (x: number) => 0.5 * x * (1 + erf64(x / Math.SQRT2));
  const approximate = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  for (const [kind, f] of [
    ["none", exact],
    ["tanh", approximate],
  ] as const) {
    const x = tensor(points, { requiresGrad: true });
    const [first] = grad(sum(gelu(x, kind)), x, { createGraph: true });
    const [second] = grad(sum(first!), x);
    second!.keep();
    const firsts = await first!.data();
    const seconds = await second!.data();
    for (const [i, p] of points.entries()) {
      expect(firsts[i]).toBeCloseTo(slope(f, p), 5);
      expect(seconds[i]).toBeCloseTo(
        slope((q) => slope(f, q), p),
        4,
      );
    }
  }
});

test("a gradient penalty's gradient is right: second derivatives through a product", async () => {
  const w = tensor([[2, -1]], { requiresGrad: true });
  const x = tensor([[3], [5]], { requiresGrad: true });
  // y = (w x)^2, dy/dx = 2 (w x) w^T, penalty = sum (dy/dx)^2 = 4 (w x)^2 |w|^2.
  const y = pow(matmul(w, x), 2);
  const [slopes] = grad(y, x, { createGraph: true });
  const penalty = sum(pow(slopes!, 2));
  penalty.backward();
  // w x = 1 and |w|^2 = 5: the gradient over w is 8 (w x) |w|^2 x + 8 (w x)^2 w.
  expect(await w.grad!.array()).toEqual([[8 * 5 * 3 + 16, 8 * 5 * 5 - 8]]);
});

test("second derivatives of softmax, log-softmax and cross-entropy agree with differences of the first", async () => {
  const at = [0.3, -1.2, 0.8, 2];
  const direction = [0.5, -0.25, 1, 0.75];
  const losses: Record<string, (x: Tensor) => Tensor> = {
    softmax: (x) => sum(pow(softmax(x, 0), 3)),
    logSoftmax: (x) => sum(mul(pow(logSoftmax(x, 0), 2), tensor([1, 2, 3, 4]))),
    crossEntropy: (x) =>
      pow(
        crossEntropy(x.reshape(1, 4), tensor(new Int32Array([2])), {
          labelSmoothing: 0.1,
          weight: tensor([1, 2, 0.5, 3]),
        }),
        2,
      ),
  };
  const step = 1 / 64;
  for (const [name, loss] of Object.entries(losses)) {
    const slopes = async (sign: number) => {
      const x = tensor(
        at.map((v, i) => v + sign * step * direction[i]!),
        { requiresGrad: true },
      );
      return (await grad(loss(x), x)[0]!.data()) as Float32Array;
    };
    const [up, down] = [await slopes(1), await slopes(-1)];
    const x = tensor(at, { requiresGrad: true });
    const [first] = grad(loss(x), x, { createGraph: true });
    const [second] = grad(sum(mul(first!, tensor(direction))), x);
    const values = await second!.data();
    for (let i = 0; i < 4; i++)
      expect([name, i, values[i]]).toEqual([name, i, expect.closeTo((up[i]! - down[i]!) / (2 * step), 2)]);
  }
});

test("random numbers are the stream's, whatever part of the tensor is drawn", async () => {
  const stream = new PhiloxStream(11, [3, 4]);
  const whole = await rand([70], { seed: 11, stream: [3, 4] }).data();
  expect([...whole]).toEqual(Array.from({ length: 70 }, (_, i) => stream.uniform(i)));
  const part = await rand([10], { seed: 11, stream: [3, 4], first: 33 }).data();
  expect([...part]).toEqual([...whole.slice(33, 43)]);
});

test("normal numbers have mean 0 and variance 1", async () => {
  const n = randn([40_000], { seed: 2, stream: [0, 0] }).keep();
  // Three standard deviations of the estimates.
  expect(Math.abs(await mean(n).item())).toBeLessThan(3 / Math.sqrt(40_000));
  expect(Math.abs((await var_(n).item()) - 1)).toBeLessThan(3 * Math.sqrt(2 / 40_000));
});

test("matrix products agree with float64 for every layout, odd sizes and views", async () => {
  const check = async (m: number, k: number, n: number, transposeA: boolean, transposeB: boolean) => {
    const a = tensor(
      Float32Array.from({ length: m * k }, (_, i) => ((i * 7) % 13) - 6),
      { shape: transposeA ? [k, m] : [m, k] },
    );
    const b = tensor(
      Float32Array.from({ length: k * n }, (_, i) => ((i * 5) % 11) - 5),
      { shape: transposeB ? [n, k] : [k, n] },
    );
    const c = await matmul(transposeA ? a.t() : a, transposeB ? b.t() : b).data();
    const [left, right] = [await a.data(), await b.data()];
    for (let row = 0; row < m; row++)
      for (let column = 0; column < n; column++) {
        let total = 0;
        for (let i = 0; i < k; i++)
          total += left[transposeA ? i * m + row : row * k + i]! * right[transposeB ? column * k + i : i * n + column]!;
        if (c[row * n + column] !== total)
          throw new Error(
            `[${m}, ${k}] @ [${k}, ${n}] ${transposeA} ${transposeB}: at ${row}, ${column} ${c[row * n + column]} is not ${total}`,
          );
      }
  };
  // Small integers, so that every product and sum is exact.
  for (const [m, k, n] of [
    [1, 1, 1],
    [5, 7, 3],
    [64, 64, 64],
    [33, 20, 36],
    [100, 12, 132],
    [68, 64, 10],
    [130, 6, 129],
  ] as const)
    for (const [ta, tb] of [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ] as const)
      await check(m, k, n, ta, tb);
});

test("a product has the same bits whichever kernel computes it", async () => {
  const [m, k, n] = [136, 36, 136];
  const a = rand([m, k], { seed: 1, stream: [1, 0] })
    .sub(0.5)
    .keep();
  const b = rand([k, n], { seed: 1, stream: [2, 0] })
    .sub(0.5)
    .keep();
  const whole = matmul(a, b).keep();
  const bits = async (t: Tensor) => new Uint32Array(((await t.data()) as Float32Array).slice().buffer);
  const expected = await bits(whole);
  // Large and small tiles, operands by strides, and both transposed.
  const rows = matmul(a.narrow(0, 0, 8), b);
  expect(await bits(rows)).toEqual(expected.slice(0, 8 * n));
  const odd = matmul(a.narrow(0, 1, 5), b.narrow(1, 0, 3));
  const part = whole.narrow(0, 1, 5).narrow(1, 0, 3);
  const [ofOdd, ofPart] = await Promise.all([bits(odd), bits(part)]);
  expect(ofOdd).toEqual(ofPart);
  const transposed = [matmul(a.t().contiguous().t(), b), matmul(a, b.t().contiguous().t()), matmul(b.t(), a.t()).t()];
  for (const other of await Promise.all(transposed.map(bits))) expect(other).toEqual(expected);
});

test("exp overflows to infinity and underflows to zero", async () => {
  expect(await exp(tensor([100, -200, infinity, -infinity])).array()).toEqual([infinity, 0, infinity, 0]);
});

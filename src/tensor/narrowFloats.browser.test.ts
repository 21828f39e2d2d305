import { expect, test } from "vitest";
import { fromBrain, fromHalf, toBrain, toHalf } from "../base/float16";
import * as torch from "./index";
import { lastPlan } from "./runtime";

const types = ["float16", "bfloat16"] as const;
const nearest = { float16: (x: number) => fromHalf(toHalf(x)), bfloat16: (x: number) => fromBrain(toBrain(x)) };

/** Numbers that are hard to round: ties, the ends of the ranges, subnormals, zeros, what isn't finite. */
const hard = [
  ...[0, -0, 1, -1, 1 / 3, 2049, 2051, -2049, 65504, 65519, 65520, -65520, 1e5, 1e30, 3.3e38, 3.4e38, -3.4e38],
  ...[2 ** -14, 2 ** -15, 2 ** -24, 1.5 * 2 ** -24, 2 ** -25, 1.01 * 2 ** -25, 2.5 * 2 ** -24, -(2 ** -24), 2 ** -26],
  ...[1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 6.1e-5, 5.9e-5, Infinity, -Infinity, Number.NaN],
];

test.each(types)("%s survives upload and download, in any number", async (dtype) => {
  for (const length of [0, 1, 3, 4, 5, hard.length]) {
    const values = hard.slice(hard.length - length);
    const uploaded = torch.tensor(values, { dtype, shape: [length] });
    expect([...(await uploaded.data())]).toEqual(values.map(nearest[dtype]));
    expect(String(uploaded)).toBe(`${dtype}[${length}]`);
  }
});

test.each(types)("to(%s) rounds to nearest, ties to even; too large is infinite, NaN stays NaN", async (dtype) => {
  const narrow = torch.tensor(hard).to(dtype);
  const back = narrow.float();
  const [stored, wide] = await Promise.all([narrow.data(), back.data()]);
  expect([...stored]).toEqual(hard.map(nearest[dtype]));
  expect([...wide]).toEqual(hard.map(nearest[dtype]));
});

test.each(types)("every result of %s operators is rounded, stored or not", async (dtype) => {
  const [a, b] = [1 / 3, 0.7].map((x) => nearest[dtype](x)) as [number, number];
  const x = torch.tensor([a, b, a], { dtype });
  const y = torch.tensor([b, b, a], { dtype });
  // The sum isn't stored.
  const z = x.add(y).mul(x);
  expect(z.dtype).toBe(dtype);
  const product = (p: number, q: number) => nearest[dtype](Math.fround(nearest[dtype](p + q) * p));
  expect([...(await z.data())]).toEqual([product(a, b), product(b, b), product(a, a)]);
});

test.each(types)("types promote as PyTorch's do with %s", (dtype) => {
  const narrow = torch.ones([2], { dtype });
  const other = dtype === "float16" ? "bfloat16" : "float16";
  const types = [
    narrow.add(narrow),
    narrow.mul(2.5),
    narrow.add(torch.ones([2], { dtype: "int32" })),
    narrow.add(torch.ones([])),
    narrow.add(torch.ones([2])),
    narrow.add(torch.ones([2], { dtype: other })),
    narrow.div(2),
    narrow.gt(0),
    narrow.argmax(),
  ].map((result) => result.dtype);
  expect(types).toEqual([...new Array(4).fill(dtype), "float32", "float32", dtype, "bool", "int32"]);
});

test.each(types)("sums and products of %s are accumulated in float32", async (dtype) => {
  const a = torch.full([3072], 6, { dtype });
  const b = torch.full([3072], 4, { dtype });
  const rows = (x: torch.Tensor) => torch.reshape(x, [1, 3072]);
  const columns = (x: torch.Tensor) => torch.reshape(x, [3072, 1]);
  const product = torch.mm(rows(a), columns(b), { outDtype: "float32" });
  // In float16 it is too large.
  const rounded = torch.mm(rows(a), columns(b));
  const ones = torch.ones([4099], { dtype }).sum();
  const results = await Promise.all([product.item(), rounded.item(), ones.item(), a.float().sum().item()]);
  expect(results).toEqual([73728, nearest[dtype](73728), nearest[dtype](4099), 18432]);
  expect([product.dtype, rounded.dtype]).toEqual(["float32", dtype]);
});

/** Values that the types hold exactly, of which sums do too. */
const grid = (...shape: number[]) =>
  torch.tensor(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((i * 7) % 16) - 8),
    { shape },
  );

/** Kernels of every family, on sizes that end within a word and on views. */
const families: Readonly<Record<string, (x: torch.Tensor) => torch.Tensor>> = {
  "elementwise, broadcast": (x) => torch.relu(x.mul(x.narrow(0, 0, 1)).add(3)),
  "views copied": (x) => torch.contiguous(torch.transpose(x, 0, 1)),
  "a view in the middle": (x) => torch.contiguous(torch.narrow(x, 1, 1, 2)),
  joined: (x) => torch.cat([x, x.narrow(1, 0, 2), x], 1),
  padded: (x) => torch.constantPadNd(x, [1, 2], 1),
  flipped: (x) => torch.flip(x, [1]),
  gathered: (x) => torch.indexSelect(x, 0, torch.tensor([2, 0, 2], { dtype: "int32" })),
  "scattered sums": (x) => torch.indexAdd(x, 0, torch.tensor([1, 1, 1], { dtype: "int32" }), x.narrow(0, 0, 3)),
  sorted: (x) => torch.sort(x, 1).values,
  "sum of rows": (x) => torch.sum(x, 1),
  "sum of columns": (x) => torch.sum(x, 0),
  largest: (x) => torch.amax(x, 1),
  cumulative: (x) => torch.cumsum(x, 1),
  matmul: (x) => torch.matmul(x, torch.transpose(x, 0, 1)),
  "matmul in quads": (x) =>
    torch.matmul(
      x,
      torch.cat(
        [x, x, x, x].map((part) => torch.transpose(part, 0, 1)),
        1,
      ),
    ),
  convolution: (x) =>
    torch.conv2d(torch.reshape(x, [1, 1, ...x.shape]), torch.reshape(x.narrow(0, 0, 2).narrow(1, 0, 2), [1, 1, 2, 2])),
  "max pooling": (x) => torch.maxPool2d(torch.reshape(x, [1, 1, ...x.shape]), 2),
  "average pooling": (x) => torch.avgPool2d(torch.reshape(x, [1, 1, ...x.shape]), 2),
  embedding: (x) => torch.embedding(torch.tensor([3, 0, 3], { dtype: "int32" }), x),
  softmax: (x) => torch.softmax(x, 1),
  "layer norm": (x) => torch.layerNorm(x, [x.size(1)]),
  "batch norm": (x) => torch.batchNorm(x, null, null, { training: true }),
  variance: (x) => torch.var_(x, 1),
  "cross-entropy": (x) => torch.crossEntropy(x, torch.tensor([0, 1, 2, 3, 4], { dtype: "int32" })),
  "fused attention": (x) => {
    // Gradients take in the results as they are rounded; of values up to 1 those are off by 2^-11 and 2^-8 at most.
    const heads = torch.reshape(torch.mul(x.narrow(1, 0, 4), 1 / 8), [1, 1, 5, 4]);
    return torch.scaledDotProductAttention(heads, heads, heads, { isCausal: true });
  },
  attention: (x) => {
    const heads = torch.reshape(x, [1, 1, ...x.shape]);
    return torch.scaledDotProductAttention(heads, heads, heads);
  },
};

/** What a function gives for the grid in a type, and the gradient of the results' sum. */
async function computed(f: (x: torch.Tensor) => torch.Tensor, dtype: torch.DType) {
  const x = grid(5, 5).to(dtype).detach();
  x.requiresGrad = true;
  const result = f(x);
  result.backward(torch.full(result.shape, 1, { dtype }));
  const [values, gradients] = await Promise.all([result.data(), x.grad!.data()]);
  expect([result.dtype, x.grad!.dtype]).toEqual([dtype, dtype]);
  return { values, gradients };
}

/** The largest difference, relative to the largest value or 1. */
function difference(actual: torch.TypedArray, expected: torch.TypedArray): number {
  const largest = Math.max(1, ...expected.map(Math.abs));
  return Math.max(...expected.map((value, i) => Math.abs(actual[i]! - value))) / largest;
}

/** Two roundings one after the other: some of these are several operators. */
const roundings = { float16: 2 * 2 ** -11, bfloat16: 2 * 2 ** -8 };

test.each(Object.entries(families))("%s: results and gradients are float32's, rounded", async (_, f) => {
  const wide = await computed(f, "float32");
  for (const dtype of types) {
    const narrow = await computed(f, dtype);
    expect(difference(narrow.values, wide.values), dtype).toBeLessThanOrEqual(roundings[dtype]);
    expect(difference(narrow.gradients, wide.gradients), `${dtype} gradients`).toBeLessThanOrEqual(roundings[dtype]);
  }
});

test.each(types)("gradients of a %s leaf add up over backward passes", async (dtype) => {
  const x = torch.tensor([1, 2, 3, 4, 5], { dtype, requiresGrad: true });
  const y = torch.tensor([5, 4, 3, 2, 1], { dtype });
  torch.mul(x, y).backward(torch.ones([5], { dtype }));
  await torch.flush();
  torch.mul(x, y).backward(torch.ones([5], { dtype }));
  expect(await x.grad!.array()).toEqual([10, 8, 6, 4, 2]);
});

test("float16 is read and stored natively where the adapter has shader-f16, and packed elsewhere", async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const hasHalves = adapter!.features.has("shader-f16");
  const codeOf = async (dtype: torch.NarrowType) => {
    await torch.sum(torch.tensor([[1, 2, 3]], { dtype }), 1).data();
    return (await lastPlan())!.steps[0]!.kernel.shader.code;
  };
  const [half, brain] = [await codeOf("float16"), await codeOf("bfloat16")];
  expect([half.includes("array<f16>"), brain.includes("array<f16>")]).toEqual([hasHalves, false]);
  expect(half.includes("unpack2x16float")).toBe(!hasHalves);
});

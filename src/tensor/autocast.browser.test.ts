import { expect, test } from "vitest";
import { currentRecording } from "./apply";
import * as torch from "./index";

const { autocast } = torch;
const half = (...shape: number[]) => torch.ones(shape, { dtype: "float16" });
const single = (...shape: number[]) => torch.ones(shape);
const target = () => torch.tensor([1, 0], { dtype: "int32" });

/** Casts to a type that are recorded and not yet run. */
const castsTo = (dtype: torch.DType) => currentRecording().graph.nodes.filter(({ op }) => op === `to ${dtype}`).length;

test("products, convolutions and attention take the region's type", () => {
  const results = (dtype: torch.NarrowType) =>
    autocast({ dtype }, () => [
      torch.matmul(single(2, 3), single(3, 2)),
      torch.bmm(single(2, 2, 3), half(2, 3, 2)),
      torch.linear(single(2, 3), single(4, 3), single(4)),
      torch.addmm(single(2, 2), single(2, 3), single(3, 2)),
      torch.einsum("ij,jk->ik", single(2, 3), single(3, 2)),
      torch.conv2d(single(1, 1, 3, 3), single(1, 1, 2, 2), single(1)),
      torch.convTranspose2d(single(1, 1, 3, 3), single(1, 1, 2, 2)),
      torch.scaledDotProductAttention(single(1, 1, 2, 4), single(1, 1, 2, 4), single(1, 1, 2, 4)),
      torch.prelu(single(2), single(1)),
    ]);
  for (const dtype of ["float16", "bfloat16"] as const)
    expect(results(dtype).map((result) => result.dtype)).toEqual(new Array(9).fill(dtype));
});

test("exponentials, sums, norms, softmax and losses take float32", () => {
  const x = half(2, 4);
  const results = autocast({}, () => [
    ...[torch.exp, torch.log, torch.rsqrt, torch.reciprocal, torch.expm1, torch.log1p, torch.tan].map((f) => f(x)),
    ...[torch.pow(x, 2), torch.pow(x, half(2, 4)), torch.softplus(x), torch.logsumexp(x, 1), torch.cumsum(x, 1)],
    ...[torch.sum(x), torch.prod(x), torch.softmax(x, 1), torch.logSoftmax(x, 1), torch.norm(x)],
    ...[torch.layerNorm(x, [4]), torch.groupNorm(x, 2), torch.rmsNorm(x, [4]), torch.cosineSimilarity(x, x)],
    ...[torch.crossEntropy(x, target()), torch.nllLoss(x, target()), torch.mseLoss(x, x), torch.klDiv(x, x)],
    torch.binaryCrossEntropyWithLogits(x, x),
  ]);
  expect(results.map(({ dtype }) => dtype)).toEqual(new Array(results.length).fill("float32"));
});

test("the rest runs in the types it gets, and mixed types promote", () => {
  const results = autocast({}, () => [
    torch.relu(half(2)),
    torch.gelu(half(2)),
    torch.mean(half(2)),
    torch.add(half(2), half(2)),
    torch.maxPool2d(half(1, 1, 2, 2), 2),
    torch.add(half(2), single(2)),
    torch.cat([half(2), single(2)]),
    torch.stack([half(2), single(2)]),
    torch.where(torch.ones([2], { dtype: "bool" }), half(2), single(2)),
    torch.relu(single(2)),
  ]);
  expect(results.map(({ dtype }) => dtype)).toEqual([...new Array(5).fill("float16"), ...new Array(5).fill("float32")]);
});

test("regions nest, can be switched off, and end with their function", () => {
  const product = () => torch.matmul(single(2, 2), single(2, 2)).dtype;
  const types = autocast({ dtype: "bfloat16" }, () => [
    product(),
    autocast({ enabled: false }, product),
    autocast({ dtype: "float16" }, product),
    product(),
  ]);
  expect(types).toEqual(["bfloat16", "float32", "float16", "bfloat16"]);
  expect(product()).toBe("float32");
  expect(() => autocast({}, () => fail())).toThrow("in the region");
  expect(product()).toBe("float32");
  expect(() => autocast({}, async () => {})).toThrow("the function is asynchronous");
});

function fail(): never {
  throw new Error("in the region");
}

test("a parameter is cast once for a region, unless it changes", async () => {
  const weight = torch.tensor([1, 2, 3, 4], { shape: [2, 2], requiresGrad: true });
  const x = torch.tensor([1, 2, 3, 4], { shape: [2, 2] });
  await torch.flush();
  autocast({}, () => torch.matmul(torch.matmul(x, weight), weight));
  // The input and the weight.
  expect(castsTo("float16")).toBe(2 + 2);
  await torch.flush();
  autocast({ cacheEnabled: false }, () => torch.matmul(torch.matmul(x, weight), weight));
  expect(castsTo("float16")).toBe(3 + 2);
  const [before, after] = autocast({}, () => {
    const first = torch.matmul(x, weight);
    torch.noGrad(() => torch.copy_(weight, torch.mul(weight, 2)));
    return [first, torch.matmul(x, weight)];
  }) as [torch.Tensor, torch.Tensor];
  expect(await Promise.all([before.array(), after.array()])).toEqual([
    [
      [7, 10],
      [15, 22],
    ],
    [
      [14, 20],
      [30, 44],
    ],
  ]);
});

test("gradients of float32 parameters are float32, of what the region computed in its type", async () => {
  const weight = torch.tensor([1, 2049], { shape: [1, 2], requiresGrad: true });
  const x = torch.tensor([1, 3], { shape: [1, 2], requiresGrad: true });
  const y = autocast({}, () => torch.linear(x, weight));
  y.backward(torch.tensor([1], { shape: [1, 1], dtype: "float16" }));
  expect([y.dtype, weight.grad!.dtype, x.grad!.dtype]).toEqual(["float16", "float32", "float32"]);
  // 2049 is 2048 in float16.
  expect([await x.grad!.array(), await weight.grad!.array()]).toEqual([[[1, 2048]], [[1, 3]]]);
});

test("after the first steps, a step in mixed precision makes no buffer, pipeline or bind group", async () => {
  const { stats } = await torch.getDevice();
  const weight = torch.tensor([1, 2, 3, 4, 5, 6], { shape: [2, 3], requiresGrad: true });
  const x = torch.tensor([1, 2, 3], { shape: [1, 3] });
  const made = async () => {
    const loss = autocast({ dtype: "bfloat16" }, () => torch.relu(torch.linear(x, weight)).sum());
    loss.backward();
    await torch.flush();
    return [stats.buffers, stats.pipelines, stats.bindGroups];
  };
  await made();
  const before = await made();
  await made();
  expect(await made()).toEqual(before);
});

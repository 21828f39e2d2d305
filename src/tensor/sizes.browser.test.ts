import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import * as torch from "./index";
import { type Tensor, tensor } from "./index";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

const integers = (...values: number[]) => tensor(Int32Array.from(values));
const filled = (shape: readonly number[], at: (i: number) => number, requiresGrad = false) => {
  const length = shape.reduce((product, size) => product * size, 1);
  return tensor(
    Float32Array.from({ length }, (_, i) => at(i)),
    { shape, requiresGrad },
  );
};

test("the input's gradient of a depthwise convolution with a stride", async () => {
  const input = filled([1, 4, 4, 4], () => 1, true);
  const weight = filled([4, 1, 3, 3], (i) => i, true);
  torch.conv2d(input, weight, null, { stride: 2, padding: 1, groups: 4 }).backward(torch.ones([1, 4, 2, 2]));
  const [gradient, ofWeight] = await Promise.all([input.grad!.data(), weight.grad!.data()]);
  expect([...gradient.slice(0, 8)]).toEqual([4, 8, 4, 5, 8, 16, 8, 10]);
  // Window [c] of weights 9c + (0..8): each pixel gets the same of each channel, and 9 more for every tap on it.
  expect([...gradient.slice(16, 24)]).toEqual([13, 26, 13, 14, 26, 52, 26, 28]);
  expect([...ofWeight.slice(0, 9)]).toEqual([1, 2, 2, 2, 4, 4, 2, 4, 4]);
});

test("a max pool over negative numbers is their maximum, also where padding is around them", async () => {
  const input = filled([1, 1, 3, 3], (i) => -(i + 1), true);
  const padded = torch.maxPool2d(input, 2, { stride: 2, padding: 1 });
  const rows = torch.maxPool1d(input.reshape(1, 3, 3), 3);
  const adaptive = torch.adaptiveMaxPool2d(input, [1, 2]);
  padded.backward(torch.ones([1, 1, 2, 2]));
  const values = await Promise.all([padded, rows, adaptive, input.grad!].map((result) => result.data()));
  expect(values.map((result) => [...result])).toEqual([
    [-1, -2, -4, -5],
    [-1, -4, -7],
    [-1, -2],
    [1, 1, 0, 1, 1, 0, 0, 0, 0],
  ]);
});

test("gradients of repeated indices add up, however they are looked up", async () => {
  const repeated = integers(3, 0, 3, 3);
  const lookUps: Record<string, (table: Tensor) => Tensor> = {
    embedding: (table) => torch.embedding(repeated, table),
    indexSelect: (table) => torch.indexSelect(table, 0, repeated),
    brackets: (table) => torch.index(table, repeated),
    gather: (table) => torch.gather(table, 0, repeated.unsqueeze(1).expand(4, 2)),
    takeAlongDim: (table) => torch.takeAlongDim(table, repeated.unsqueeze(1).expand(4, 2), 0),
    embeddingBag: (table) => torch.embeddingBag(repeated.unsqueeze(1), table, { mode: "sum" }),
    expand: (table) => torch.cat([table.narrow(0, 3, 1).expand(3, 2), table.narrow(0, 0, 1)], 0),
  };
  const gradients = Object.values(lookUps).map((lookUp) => {
    const table = torch.zeros([5, 2]).keep();
    table.requiresGrad = true;
    lookUp(table).backward(torch.ones([4, 2]));
    return table.grad!.data();
  });
  const added = torch.indexAdd(torch.zeros([5, 2]), 0, repeated, torch.ones([4, 2]));
  const scattered = torch.scatterAdd(
    torch.zeros([5, 2]),
    0,
    repeated.unsqueeze(1).expand(4, 2).contiguous(),
    torch.ones([4, 2]),
  );
  const all = await Promise.all([...gradients, added.data(), scattered.data()]);
  const names = [...Object.keys(lookUps), "indexAdd", "scatterAdd"];
  expect(names.map((name, i) => [name, ...all[i]!])).toEqual(names.map((name) => [name, 1, 1, 0, 0, 0, 0, 3, 3, 0, 0]));
});

test("rows beyond 65,535 workgroups are computed as the first ones are", async () => {
  const [rows, width, pattern] = [140_007, 5, 7];
  // Row r is one of seven.
  const few = filled([pattern, width], (i) => ((i * 37) % 23) / 8 - 1);
  const many = torch.index(few, tensor(Int32Array.from({ length: rows }, (_, r) => r % pattern))).keep();
  const labels = (count: number) => torch.remainder(torch.arange(count), width);
  const operations: Record<string, (x: Tensor) => Tensor> = {
    softmax: (x) => torch.softmax(x, 1),
    logSoftmax: (x) => torch.logSoftmax(x, 1),
    sum: (x) => torch.sum(x, 1),
    prod: (x) => torch.prod(x, 1),
    amax: (x) => torch.amax(x, 1),
    argmin: (x) => torch.argmin(x, 1),
    norm: (x) => torch.vectorNorm(x, 2, 1),
    variance: (x) => torch.var_(x, 1),
    cumsum: (x) => torch.cumsum(x, 1),
    cumprod: (x) => torch.cumprod(x, 1),
    sort: (x) => torch.sort(x, 1).values,
    median: (x) => torch.median(x, 1).values,
    topk: (x) => torch.topk(x, 2, 1).values,
    layerNorm: (x) => torch.layerNorm(x, [width]),
    matmul: (x) => torch.matmul(x, few.t()),
    bmm: (x) => torch.bmm(x.unsqueeze(1), x.unsqueeze(2)),
    gather: (x) => torch.gather(x, 1, torch.zeros([x.size(0), 2], { dtype: "int32" })),
    flip: (x) => torch.flip(x, [1]),
    maxPool: (x) => torch.maxPool1d(x.unsqueeze(1), 2),
    avgPool: (x) => torch.avgPool1d(x.unsqueeze(1), 2),
    conv: (x) => torch.conv1d(x.unsqueeze(1), few.narrow(0, 0, 2).narrow(1, 0, 3).unsqueeze(1).contiguous()),
    transposed: (x) => torch.sinh(x.t()).t().contiguous(),
  };
  for (const [name, operation] of Object.entries(operations)) {
    const [ofFew, ofMany] = await Promise.all([operation(few).data(), operation(many).data()]);
    const each = ofFew.length / pattern;
    expect([name, ofMany.length]).toEqual([name, each * rows]);
    const wrong = ofMany.findIndex((value, i) => Math.abs(value - ofFew[i % ofFew.length]!) > 1e-5);
    expect([name, wrong]).toEqual([name, -1]);
  }
  const loss = (x: Tensor) => {
    const leaf = x.detach().keep();
    leaf.requiresGrad = true;
    torch.crossEntropy(leaf, torch.remainder(labels(x.size(0)), 1), { reduction: "sum" }).backward();
    return leaf.grad!.data();
  };
  const [ofFew, ofMany] = await Promise.all([loss(few), loss(many)]);
  expect(ofMany.findIndex((value, i) => Math.abs(value - ofFew[i % ofFew.length]!) > 1e-6)).toBe(-1);
});

test("long reductions keep their precision", async () => {
  const length = 2 ** 20 + 3;
  const values = Float32Array.from({ length }, (_, i) => ((i * 7919) % 1009) / 1009 - 0.25);
  const x = tensor(values).keep();
  let [total, squares, exponentials, largest] = [0, 0, 0, -Infinity];
  for (const value of values) {
    total += value;
    squares += value * value;
    exponentials += Math.exp(value);
    largest = Math.max(largest, value);
  }
  // Every fourth value with itself, in a product of matrices that is 2^17 deep.
  const deep = x.narrow(0, 0, 2 ** 19).reshape(2 ** 17, 4);
  let columnSquares = 0;
  for (let i = 0; i < 2 ** 19; i += 4) columnSquares += values[i]! ** 2;
  const results = {
    sum: [torch.sum(x), total],
    mean: [torch.mean(x), total / length],
    norm: [torch.vectorNorm(x), Math.sqrt(squares)],
    logsumexp: [torch.logsumexp(x, 0), Math.log(exponentials)],
    dot: [torch.dot(x, x), squares],
    product: [torch.matmul(deep.t(), deep).reshape(16), columnSquares],
    amax: [torch.amax(x), largest],
    softmax: [torch.sum(torch.softmax(x.narrow(0, 0, 2 ** 20), 0)), 1],
    softmaxOfOddLength: [torch.sum(torch.softmax(x, 0)), 1],
    logSoftmax: [torch.logSoftmax(x, 0).narrow(0, 0, 1), values[0]! - Math.log(exponentials)],
    lastOfCumsum: [torch.cumsum(x, 0).narrow(0, length - 1, 1), total],
    ofChain: [torch.sum(torch.exp(x)), exponentials],
  } as const;
  const got = await Promise.all(Object.values(results).map(([result]) => result.data()));
  for (const [i, [name, [, want]]] of Object.entries(results).entries())
    expect(Math.abs(got[i]![0]! / want - 1), `${name}: ${got[i]![0]}, in float64 ${want}`).toBeLessThan(2e-6);
});

test("batches of nothing go through layers and losses, and give gradients of zeros", async () => {
  const { NaN: nan } = Number;
  const none = (...shape: number[]) => torch.zeros([0, ...shape]);
  const image = torch.zeros([0, 2, 6, 6]);
  const weight = torch.ones([4, 2, 3, 3]).keep();
  weight.requiresGrad = true;
  const table = torch.ones([5, 3]).keep();
  table.requiresGrad = true;
  const shapes: Record<string, Tensor> = {
    conv2d: torch.conv2d(image, weight),
    maxPool2d: torch.maxPool2d(image, 2),
    avgPool2d: torch.avgPool2d(image, 2),
    layerNorm: torch.layerNorm(none(3), [3]),
    groupNorm: torch.groupNorm(image, 2),
    softmax: torch.softmax(none(3), 1),
    embedding: torch.embedding(tensor(new Int32Array(0)), table),
    linear: torch.linear(none(3), table),
    cat: torch.cat([none(3), none(3)], 0),
    attention: torch.scaledDotProductAttention(none(2, 4, 8), none(2, 4, 8), none(2, 4, 8)),
    interpolate: torch.interpolate(image, { scaleFactor: 2 }),
  };
  expect(Object.fromEntries(Object.entries(shapes).map(([name, { shape }]) => [name, shape]))).toEqual({
    conv2d: [0, 4, 4, 4],
    maxPool2d: [0, 2, 3, 3],
    avgPool2d: [0, 2, 3, 3],
    layerNorm: [0, 3],
    groupNorm: [0, 2, 6, 6],
    softmax: [0, 3],
    embedding: [0, 3],
    linear: [0, 5],
    cat: [0, 3],
    attention: [0, 2, 4, 8],
    interpolate: [0, 2, 12, 12],
  });
  torch.sum(shapes.conv2d!).backward();
  torch.add(torch.sum(shapes.embedding!), torch.sum(shapes.linear!)).backward();
  const reads = [...Object.values(shapes).map((result) => result.data()), weight.grad!.data(), table.grad!.data()];
  const values = await Promise.all(reads);
  for (const empty of values.slice(0, -2)) expect(empty).toHaveLength(0);
  expect(values.at(-2)).toEqual(new Float32Array(72));
  expect(values.at(-1)).toEqual(new Float32Array(15));
  const losses = await Promise.all([
    torch.mseLoss(none(3), none(3)).item(),
    torch.mseLoss(none(3), none(3), { reduction: "sum" }).item(),
    torch.crossEntropy(none(3), tensor(new Int32Array(0))).item(),
    torch.crossEntropy(none(3), tensor(new Int32Array(0)), { reduction: "sum" }).item(),
  ]);
  expect(losses).toEqual([nan, 0, nan, 0]);
});

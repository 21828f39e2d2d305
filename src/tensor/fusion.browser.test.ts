import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import {
  accumulate_,
  add,
  cat,
  copy_,
  explain,
  FlatParameters,
  flush,
  gelu,
  linear,
  matmul,
  mul,
  relu,
  setDefaultDevice,
  sub,
  sum,
  type Tensor,
  tensor,
  transpose,
  zeroGradients,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

/** How many kernels run until the values are read, and the values. */
async function run(...results: Tensor[]) {
  const before = device.stats.dispatches;
  const values = await Promise.all(results.map((result) => result.array()));
  return { dispatches: device.stats.dispatches - before, values };
}

const grid = (rows: number, columns: number) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, i) => i - 7),
    { shape: [rows, columns] },
  );

test("a chain of elementwise operators with broadcasting is one kernel", async () => {
  const x = grid(3, 5);
  const [row, column] = [tensor([1, 2, 3, 4, 5]), tensor([[10], [20], [30]])];
  const { dispatches, values } = await run(relu(sub(mul(add(x, row), column), 100)).reshape(15));
  expect(dispatches).toBe(1);
  const expected = Array.from({ length: 15 }, (_, i) =>
    Math.max(0, (i - 7 + (i % 5) + 1) * 10 * (Math.floor(i / 5) + 1) - 100),
  );
  expect(values).toEqual([expected]);
});

test("what of a chain is needed elsewhere is stored by the same kernel", async () => {
  const x = tensor([1, 2, 3]);
  const doubled = mul(x, 2);
  const { dispatches, values } = await run(doubled, add(doubled, 1), mul(add(doubled, 1), doubled));
  expect(dispatches).toBe(1);
  expect(values).toEqual([
    [2, 4, 6],
    [3, 5, 7],
    [6, 20, 42],
  ]);
});

test("operands that are views, gathered or of odd sizes give the same as apart", async () => {
  const x = grid(6, 7);
  const views = [
    transpose(x.narrow(1, 1, 6), 0, 1),
    x.narrow(1, 1, 6),
    x.narrow(1, 0, 1),
    x.narrow(0, 2, 1).narrow(1, 1, 6),
  ];
  let together: Tensor = x.narrow(1, 1, 6);
  for (const [i, view] of views.entries()) together = add(mul(together, i + 2), view);
  const element = (row: number, column: number) => row * 7 + column - 7;
  const expected = Array.from({ length: 6 }, (_, r) =>
    Array.from({ length: 6 }, (_, c) => {
      const parts = [element(c, r + 1), element(r, c + 1), element(r, 0), element(2, c + 1)];
      return parts.reduce((total, part, i) => total * (i + 2) + part, element(r, c + 1));
    }),
  );
  expect((await run(together)).values).toEqual([expected]);
});

test("a chain is computed before the memory it reads is changed in place", async () => {
  const x = tensor([1, 2, 3]);
  const before = mul(x, 10);
  copy_(x, tensor([4, 5, 6]));
  const after = add(before, x);
  expect((await run(after, x)).values).toEqual([
    [14, 25, 36],
    [4, 5, 6],
  ]);
  accumulate_(x, mul(x, x));
  expect((await run(x)).values).toEqual([[20, 30, 42]]);
});

test("one chain may be used twice by what copies, and by what walks it another way", async () => {
  const x = tensor([
    [1, 2],
    [3, 4],
  ]);
  const y = mul(x, 2);
  const { values } = await run(cat([y, y], 0), add(y, transpose(y, 0, 1)), sum(y, 0));
  expect(values).toEqual([
    [
      [2, 4],
      [6, 8],
      [2, 4],
      [6, 8],
    ],
    [
      [4, 10],
      [10, 16],
    ],
    [8, 12],
  ]);
});

test("a chain longer than a kernel takes is cut, and adds up", async () => {
  const inputs = Array.from({ length: 40 }, (_, i) => tensor([i, 2 * i, 3 * i]));
  const total = inputs.reduce((left, right) => add(left, right));
  const { dispatches, values } = await run(total);
  expect(values).toEqual([[780, 1560, 2340]]);
  expect(dispatches).toBeLessThan(8);
});

test("bias, activation and residual are part of the matmul's kernel, and what the gradient needs is stored by it", async () => {
  const x = grid(4, 8);
  const w = tensor(
    Float32Array.from({ length: 48 }, (_, i) => Math.cos(i)),
    { shape: [6, 8], requiresGrad: true },
  );
  const b = tensor([1, 2, 3, 4, 5, 6], { requiresGrad: true });
  const residual = grid(4, 6);
  const y = add(relu(linear(x, w, b)), residual);
  const [first, second] = await Promise.all([run(y), run(matmul(x, transpose(w, 0, 1)))]);
  const product = second!.values[0] as number[][];
  const expected = product.map((row, r) =>
    row.map((v, c) => Math.fround(Math.max(0, Math.fround(v + c + 1)) + r * 6 + c - 7)),
  );
  expect(first!.values).toEqual([expected]);
  const before = device.stats.dispatches;
  gelu(linear(x, w, b))
    .reshape(24)
    .keep();
  await flush();
  expect(device.stats.dispatches - before).toBe(1);
});

test("gradients are added to by the kernels that compute them", async () => {
  const x = grid(4, 8);
  const w = tensor(
    Float32Array.from({ length: 48 }, (_, i) => Math.cos(i)),
    { shape: [6, 8], requiresGrad: true },
  );
  const b = tensor([1, 2, 3, 4, 5, 6], { requiresGrad: true });
  const ones = tensor(new Float32Array(24).fill(1), { shape: [4, 6] });
  linear(x, w, b).backward(ones);
  await flush();
  const before = device.stats.dispatches;
  linear(x, w, b).backward(ones);
  await flush();
  expect(device.stats.dispatches - before).toBe(2);
  expect(await b.grad!.array()).toEqual([8, 8, 8, 8, 8, 8]);
  const sums = Array.from({ length: 8 }, (_, i) => 2 * (4 * (i - 7) + 8 * 6));
  expect(await w.grad!.array()).toEqual(Array.from({ length: 6 }, () => sums));
});

test("a reduction computes the chain before it and the one behind it in its kernel", async () => {
  const x = grid(3, 5);
  const { dispatches, values } = await run(add(mul(sum(mul(x, x), 1), 2), tensor([1, 2, 3])));
  expect(dispatches).toBe(1);
  const squares = [0, 1, 2].map((r) => [0, 1, 2, 3, 4].reduce((total, c) => total + (r * 5 + c - 7) ** 2, 0));
  expect(values).toEqual([squares.map((total, r) => 2 * total + r + 1)]);
});

test("explain() lists the kernels of the last flush with what they compute, read and write", async () => {
  const x = grid(4, 8);
  const w = grid(6, 8);
  await relu(linear(x, w, tensor([1, 2, 3, 4, 5, 6]))).data();
  const [summary, head, kernel, ...more] = (await explain()).split("\n");
  expect(summary).toMatch(
    /^1 kernels, about [\d.]+ operations and 440 B moved; 0 B of scratch memory in 0 buffers, .* at most 0 B at once\.$/,
  );
  expect(head).toMatch(/kernel +results +reads +moves +holds +computes +workgroups/);
  expect(kernel).toMatch(
    /1 +matmul NT 4x4 \+ add \+ relu +float32\[4, 6\] +float32\[4, 8\] float32\[6, 8\] float32\[6\] +440 B/,
  );
  expect(more).toEqual([]);
});

test("gradients that were set to zero are stored, not added, and are zero where nothing is added", async () => {
  const [a, b] = [tensor([1, 2, 3], { requiresGrad: true }), tensor([4, 5, 6], { requiresGrad: true })];
  const flat = new FlatParameters(Object.entries({ a, b }));
  sum(mul(a, b)).backward();
  await flush();
  const before = device.stats.dispatches;
  zeroGradients([a, b]);
  const seen = add(b.grad!, 7);
  sum(mul(a, 10)).backward();
  expect(await seen.array()).toEqual([7, 7, 7]);
  // The loss, b's gradient set to zero, 7 added to it, and a's stored: a kernel each.
  expect(device.stats.dispatches - before).toBe(4);
  expect(await a.grad!.array()).toEqual([10, 10, 10]);
  zeroGradients([b]);
  sum(mul(b, 2)).backward();
  sum(mul(b, 3)).backward();
  expect([...(await flat.readGradients())].filter((value) => value !== 0)).toEqual([10, 10, 10, 5, 5, 5]);
});

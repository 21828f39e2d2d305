import { expect, test } from "vitest";
import { add, crossEntropy, linear, matmul, mul, softmax, sum, tensor } from "./index";

test("adds and multiplies with broadcasting", async () => {
  const a = tensor([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const b = tensor([10, 20, 30]);
  expect(await mul(add(a, b), 2).array()).toEqual([
    [22, 44, 66],
    [28, 50, 72],
  ]);
});

test("multiplies matrices and differentiates the product", async () => {
  const a = tensor([[1, 2, 3]], { requiresGrad: true });
  const b = tensor(
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    { requiresGrad: true },
  );
  const c = matmul(a, b);
  sum(c).backward();
  expect(await c.array()).toEqual([[22, 28]]);
  expect(await a.grad!.array()).toEqual([[3, 7, 11]]);
  expect(await b.grad!.array()).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
});
test("softmax of equal large negative numbers is even", async () => {
  expect(await softmax(tensor([-1000, -1000]), 0).array()).toEqual([0.5, 0.5]);
});
test("the gradient of a linear layer's fused cross-entropy is softmax less the target", async () => {
  const x = tensor([
    [1, 0],
    [0, 1],
  ]);
  const w = tensor(
    [
      [0, 0],
      [0, 0],
    ],
    { requiresGrad: true },
  );
  const loss = crossEntropy(linear(x, w), tensor(new Int32Array([0, 1])));
  loss.backward();
  expect(await loss.item()).toBe(Math.fround(Math.LN2));
  expect(await w.grad!.array()).toEqual([
    [-0.25, 0.25],
    [0.25, -0.25],
  ]);
});

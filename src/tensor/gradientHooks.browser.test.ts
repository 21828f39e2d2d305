import { expect, test } from "vitest";
import { mul, registerHook, sum, tensor } from "./index";

test("a hook sees a tensor's whole gradient, and changes what flows on and what a leaf gets", async () => {
  const leaf = tensor([1, 2], { requiresGrad: true });
  const middle = mul(leaf, 3);
  const seen: Promise<unknown>[] = [];
  const remove = registerHook(middle, (gradient) => {
    seen.push(gradient.array());
    return mul(gradient, 10);
  });
  registerHook(leaf, (gradient) => mul(gradient, -1));
  // Two uses of the middle: its gradient is their sum.
  sum(mul(middle, tensor([1, 2])).add(middle)).backward();
  expect(await Promise.all(seen)).toEqual([[2, 3]]);
  expect(await leaf.grad!.array()).toEqual([-60, -90]);
  remove();
  leaf.grad = null;
  sum(mul(leaf, 3)).backward();
  expect(await leaf.grad!.array()).toEqual([-3, -3]);
});

test("a hook is refused where no gradient comes, and where it returns another shape", () => {
  expect(() => registerHook(tensor([1]), () => undefined)).toThrow(
    "registerHook: the tensor float32[1] requires no gradient",
  );
  const leaf = tensor([1, 2], { requiresGrad: true });
  registerHook(leaf, (gradient) => sum(gradient));
  expect(() => sum(leaf).backward()).toThrow("registerHook: a hook on float32[2] returned float32[]");
});

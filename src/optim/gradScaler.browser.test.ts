import { expect, test } from "vitest";
import * as torch from "../tensor/index";
import { GradScaler } from "./gradScaler";
import { Optimizer } from "./optimizer";
import { sgd } from "./spec";

/** A weight, and its steps in float16: the loss's gradient is `slope`, times the scale in float16. */
function trained(options: ConstructorParameters<typeof GradScaler>[0] = {}) {
  const weight = torch.tensor([[1]], { requiresGrad: true });
  const optimizer = new Optimizer([{ parameters: [weight], spec: sgd({ learningRate: 0.5 }) }]);
  const scaler = new GradScaler(options);
  const step = async (slope: number) => {
    optimizer.zeroGrad();
    const loss = torch.autocast({ dtype: "float16" }, () => torch.linear(torch.tensor([[slope]]), weight).sum());
    scaler.scale(loss).backward();
    const isTaken = await scaler.step(optimizer);
    scaler.update();
    return { isTaken, weight: await weight.item(), scale: scaler.getScale() };
  };
  return { weight, optimizer, scaler, step };
}

test("a gradient that float16 can't hold skips the step and halves the scale; the scale doubles after some good steps", async () => {
  const { step } = trained({ growthInterval: 2 });
  // PyTorch's first scale, 65536, is itself too large for float16.
  expect(await step(1)).toEqual({ isTaken: false, weight: 1, scale: 32768 });
  expect(await step(1)).toEqual({ isTaken: true, weight: 0.5, scale: 32768 });
  expect(await step(1)).toEqual({ isTaken: true, weight: 0, scale: 65536 });
  expect(await step(1)).toEqual({ isTaken: false, weight: 0, scale: 32768 });
  expect(await step(1)).toEqual({ isTaken: true, weight: -0.5, scale: 32768 });
  // The good step before doesn't count any more.
  expect(await step(Number.NaN)).toEqual({ isTaken: false, weight: -0.5, scale: 16384 });
  expect(await step(1)).toEqual({ isTaken: true, weight: -1, scale: 16384 });
  expect(await step(1)).toEqual({ isTaken: true, weight: -1.5, scale: 32768 });
});

test("gradients too small for float16 survive with a scale", async () => {
  const slope = 2 ** -28;
  const gradientWith = async (initScale: number) => {
    const weight = torch.tensor([[1]], { requiresGrad: true });
    // The gradient of the hidden value is the slope, in float16.
    const hidden = torch.autocast({}, () => torch.linear(torch.tensor([[1]]), weight));
    const scaler = new GradScaler({ initScale });
    scaler.scale(hidden.float().mul(slope).sum()).backward();
    scaler.unscale_(new Optimizer([{ parameters: [weight], spec: sgd({ learningRate: 1 }) }]));
    return weight.grad!.item();
  };
  expect(await gradientWith(1)).toBe(0);
  expect(await gradientWith(65536)).toBe(slope);
});

test("each optimizer's gradients are unscaled once, and each steps by its own", async () => {
  const [a, b] = [trained({ initScale: 4 }), trained()];
  const { scaler } = a;
  const loss = (weight: torch.Tensor, slope: number) => torch.mul(weight, slope).sum();
  scaler.scale(torch.add(loss(a.weight, 1), loss(b.weight, Number.POSITIVE_INFINITY))).backward();
  scaler.unscale_(a.optimizer);
  expect(() => scaler.unscale_(a.optimizer)).toThrow("unscaled already");
  expect([await scaler.step(a.optimizer), await scaler.step(b.optimizer)]).toEqual([true, false]);
  expect([await a.weight.item(), await b.weight.item()]).toEqual([0.5, 1]);
  scaler.update();
  expect(scaler.getScale()).toBe(2);
});

test("the scale doesn't grow beyond float32", async () => {
  const { weight, optimizer, scaler } = trained({ initScale: 2 ** 127, growthInterval: 1 });
  scaler.scale(torch.mul(weight, 0).sum()).backward();
  expect(await scaler.step(optimizer)).toBe(true);
  scaler.update();
  expect(scaler.stateDict()).toEqual({ scale: 2 ** 127, goodSteps: 0 });
});

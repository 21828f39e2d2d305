import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../src/gpu";
import * as nn from "../src/nn/index";
import * as torch from "../src/tensor/index";
import text from "./reference/penalties.json?raw";
import { toTensor } from "./referenceCall";
import { decode, expectClose, type ReferenceTensor } from "./referenceCase";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

/** A network's gradient penalty by PyTorch (tests/reference/penalties.py). */
interface PenaltyCase {
  readonly name: string;
  readonly state: Readonly<Record<string, ReferenceTensor>>;
  readonly input: ReferenceTensor;
  readonly penalty: number;
  readonly gradients: Readonly<Record<string, ReferenceTensor>>;
}

const { cases }: { readonly cases: readonly PenaltyCase[] } = JSON.parse(text);

class Attention extends nn.Module {
  readonly layer = new nn.TransformerEncoderLayer(8, 2, {
    dimFeedforward: 16,
    dropout: 0,
    activation: "gelu",
    batchFirst: true,
  });
  readonly head = new nn.Linear(8, 1);

  forward(input: torch.Tensor): torch.Tensor {
    return this.head.forward(torch.mean(this.layer.forward(input), 1));
  }
}

const networks: Readonly<Record<string, () => nn.Module>> = {
  "linear layers": () =>
    new nn.Sequential(
      new nn.Linear(3, 5),
      new nn.Tanh(),
      new nn.Linear(5, 4),
      new nn.SiLU(),
      new nn.Linear(4, 1),
      new nn.Softplus(),
    ),
  convolutions: () =>
    new nn.Sequential(
      new nn.Conv2d(2, 3, 3, { padding: 1 }),
      new nn.GELU(),
      new nn.AvgPool2d(2),
      new nn.Conv2d(3, 4, 2, { stride: 2 }),
      new nn.ELU(),
      new nn.MaxPool2d(2),
      new nn.Flatten(),
      new nn.LayerNorm(4),
      new nn.Linear(4, 1),
    ),
  "batch norm": () =>
    new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4), new nn.Sigmoid(), new nn.Linear(4, 1)),
  attention: () => new Attention(),
};

test.each(cases.map((of) => [of.name, of] as const))(
  "the gradient penalty of %s, and its gradients of the weights, are PyTorch's",
  async (name, of) => {
    const module = networks[name]?.() ?? expect.fail(`There is no network for the case ${name}.`);
    module.loadStateDict(
      Object.entries(of.state).map(([key, value]) => [key, { shape: value.shape, data: decode(value) }] as const),
    );
    const input = toTensor(of.input, true);
    const output = module.forward(input);
    const [slope] = torch.grad(torch.sum(output), input, { createGraph: true });
    const lengths = torch.vectorNorm(torch.flatten(slope!, 1), 2, 1);
    const penalty = torch.add(torch.mean(torch.pow(torch.sub(lengths, 1), 2)), torch.mean(output));
    penalty.backward();
    const parameters = module.namedParameters();
    expect(parameters.map(([key]) => key).sort()).toEqual(Object.keys(of.gradients).sort());
    const values = await Promise.all(parameters.map(([, { grad }]) => grad?.data()));
    expect(Math.abs((await penalty.item()) / of.penalty - 1)).toBeLessThan(1e-5);
    for (const [i, [key, { shape }]] of parameters.entries()) {
      // Where nothing depends on a parameter, PyTorch has no gradient, or zeros.
      const actual = values[i] ?? new Float32Array(shape.reduce((product, size) => product * size, 1));
      expectClose(`the gradient of ${key}`, shape, actual, of.gradients[key]!);
    }
  },
);

test("detach() stops gradients, and shares the values", async () => {
  const x = torch.tensor([2, 3], { requiresGrad: true });
  const square = torch.mul(x, x);
  const stopped = square.detach();
  expect([stopped.requiresGrad, stopped.isLeaf]).toEqual([false, true]);
  torch.sum(torch.mul(stopped, x)).backward();
  const [values, gradient] = await Promise.all([stopped.array(), x.grad!.array()]);
  expect([values, gradient]).toEqual([
    [4, 9],
    [4, 9],
  ]);
});

test("what noGrad() computes has no gradient, also where it throws in between", () => {
  const x = torch.tensor([2], { requiresGrad: true });
  expect(torch.noGrad(() => torch.mul(x, x)).requiresGrad).toBe(false);
  expect(() =>
    torch.noGrad(() => {
      throw new Error("within");
    }),
  ).toThrow("within");
  expect(torch.mul(x, x).requiresGrad).toBe(true);
});

test("gradients of several losses add up until they are set to zero", async () => {
  const x = torch.tensor([1, 2], { requiresGrad: true });
  torch.sum(torch.mul(x, 3)).backward();
  torch.sum(torch.mul(x, x)).backward();
  const accumulated = await x.grad!.array();
  torch.zeroGradients([x]);
  torch.sum(x).backward();
  expect([accumulated, await x.grad!.array()]).toEqual([
    [5, 7],
    [1, 1],
  ]);
});

test("a parameter that is changed in place outside the graph is used as it then is", async () => {
  const weight = torch.tensor([4], { requiresGrad: true });
  const losses: torch.Tensor[] = [];
  for (let step = 0; step < 3; step++) {
    weight.grad = null;
    const loss = torch.sum(torch.mul(weight, weight));
    loss.backward();
    losses.push(loss);
    // w - 2 w / 4: half of it.
    torch.noGrad(() => torch.copy_(weight, torch.sub(weight, torch.mul(weight.grad!, 0.25))));
  }
  expect(await Promise.all([...losses, weight].map((of) => of.item()))).toEqual([16, 4, 1, 0.5]);
});

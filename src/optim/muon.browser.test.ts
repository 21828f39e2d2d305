import { expect, test } from "vitest";
import { tensor } from "../tensor/index";
import { adamw, Muon, type MuonOptions, muon, Optimizer } from "./index";

const gradientAt = (step: number, length: number) =>
  Float32Array.from({ length }, (_, i) => (((step * 7 + i * 13) % 19) - 9) / 10);

const matrix = (shape: readonly [number, number]) => {
  const length = shape[0] * shape[1];
  const values = Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7) + (0.1 * i) / length);
  return tensor(values, { shape, requiresGrad: true });
};

/** Weights after 6 steps with `gradientAt`, by torch.optim.Muon's formula in PyTorch's float64. */
const pytorch: readonly [string, readonly [number, number], MuonOptions, readonly number[]][] = [
  [
    "a wide matrix",
    [3, 5],
    {},
    [
      0.0129448, 1.0084196, -0.2513159, -0.9319008, 0.5022931, 0.8019142, -0.6788675, -0.5693718, 0.857541, 0.4329197,
      -0.9035472, -0.0837761, 1.0460628, 0.0154681, -0.8979411,
    ],
  ],
  [
    "a tall one, without Nesterov, as long as AdamW's step",
    [4, 2],
    { nesterov: false, adjustLr: "matchRmsAdamw" },
    [0.0100428, 1.0126066, -0.23292, -0.8889364, 0.5470717, 0.8326349, -0.6363356, -0.5227984],
  ],
  [
    "maximizing, without weight decay",
    [2, 3],
    { maximize: true, weightDecay: 0 },
    [-0.0394366, 0.9626112, -0.253869, -0.8328695, 0.5908808, 0.9330896],
  ],
];

test.each(pytorch)("Muon takes PyTorch's steps: %s", async (_, shape, options, expected) => {
  const weights = matrix(shape);
  const optimizer = new Muon([weights], { learningRate: 0.02, ...options });
  weights.grad = tensor(new Float32Array(weights.numel), { shape });
  for (let step = 1; step <= 6; step++) {
    weights.grad.write(gradientAt(step, weights.numel));
    optimizer.step();
  }
  const got = await weights.data();
  // The polynomial multiplies small singular values by up to 3.4^5 = 500, and with them float32's rounding of 6e-8.
  for (const [i, want] of expected.entries()) expect(Math.abs(got[i]! - want), `weight ${i}`).toBeLessThan(2e-5);
});

test("matrices go to Muon and the rest to AdamW in one optimizer, which goes on from its state", async () => {
  const make = () => {
    const parameters = [matrix([2, 3]), tensor([1, 2], { requiresGrad: true })] as const;
    const [first, second] = parameters;
    const optimizer = new Optimizer([
      { parameters: [first], spec: muon({ learningRate: 0.1 }) },
      { parameters: [second], spec: adamw({ learningRate: 0.1 }) },
    ]);
    const step = (at: number) => {
      for (const parameter of parameters) {
        parameter.grad ??= tensor(new Float32Array(parameter.numel), { shape: parameter.shape });
        parameter.grad.write(gradientAt(at, parameter.numel));
      }
      optimizer.step();
    };
    return { parameters, optimizer, step, values: () => Promise.all(parameters.map((of) => of.data())) };
  };
  const [whole, resumed] = [make(), make()];
  for (let at = 1; at <= 3; at++) whole.step(at);
  const weights = await whole.values();
  const state = await whole.optimizer.stateDict();
  for (const [i, parameter] of resumed.parameters.entries()) parameter.write(weights[i]!);
  resumed.optimizer.loadStateDict(state);
  for (const of of [whole, resumed]) of.step(4);
  expect(await resumed.values()).toEqual(await whole.values());
});

test("Muon refuses what isn't a matrix, and a state of another shape", () => {
  expect(() => new Muon([tensor([1, 2], { requiresGrad: true })])).toThrow("expected matrices");
  const optimizer = new Muon([matrix([2, 3])]);
  const state = { groups: [{ learningRate: 1, parameters: [{ steps: 1, arrays: [new Float32Array(5)] }] }] };
  expect(() => optimizer.loadStateDict(state)).toThrow(
    "The state of muon is momentumBuffer [6]; the given arrays have the lengths [5].",
  );
});

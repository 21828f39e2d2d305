import { expect, test } from "vitest";
import type { OptimizerGroup } from "./optimizer";
import {
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  type LRScheduler,
  MultiStepLR,
  OneCycleLR,
  PolynomialLR,
  ReduceLROnPlateau,
  SequentialLR,
  StepLR,
} from "./scheduler";
import { sgd } from "./spec";

const optimizer = () => ({ groups: [{ parameters: [], spec: sgd({ learningRate: 0.5 }), learningRate: 0.5 }] });
type Of = ReturnType<typeof optimizer>;

/** Learning rates of 14 steps from 0.5 on, as torch.optim.lr_scheduler of PyTorch 1.13 sets them. */
const pytorch: readonly [name: string, make: (of: Of) => LRScheduler, expected: readonly number[]][] = [
  [
    "LambdaLR",
    (of) => new LambdaLR(of, (step) => 1 / (1 + step)),
    [
      0.5, 0.25, 0.1666666667, 0.125, 0.1, 0.0833333333, 0.0714285714, 0.0625, 0.0555555556, 0.05, 0.0454545455,
      0.0416666667, 0.0384615385, 0.0357142857,
    ],
  ],
  [
    "StepLR",
    (of) => new StepLR(of, { stepSize: 3, gamma: 0.5 }),
    [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.03125, 0.03125],
  ],
  [
    "MultiStepLR",
    (of) => new MultiStepLR(of, { milestones: [2, 5, 5] }),
    [0.5, 0.5, 0.05, 0.05, 0.05, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005],
  ],
  [
    "ConstantLR",
    (of) => new ConstantLR(of, { factor: 0.25, totalIters: 4 }),
    [0.125, 0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
  ],
  [
    "LinearLR",
    (of) => new LinearLR(of, { startFactor: 0.25, totalIters: 4 }),
    [0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
  ],
  [
    "ExponentialLR",
    (of) => new ExponentialLR(of, 0.9),
    [
      0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245, 0.2657205, 0.23914845, 0.215233605, 0.1937102445, 0.1743392201,
      0.156905298, 0.1412147682, 0.1270932914,
    ],
  ],
  [
    "PolynomialLR",
    (of) => new PolynomialLR(of, { totalIters: 6, power: 2 }),
    [0.5, 0.3472222222, 0.2222222222, 0.125, 0.0555555556, 0.0138888889, 0, 0, 0, 0, 0, 0, 0, 0],
  ],
  [
    "CosineAnnealingLR",
    (of) => new CosineAnnealingLR(of, { tMax: 5, etaMin: 0.01 }),
    [
      0.5, 0.4532091636, 0.3307091636, 0.1792908364, 0.0567908364, 0.01, 0.0567908364, 0.1792908364, 0.3307091636,
      0.4532091636, 0.5, 0.4532091636, 0.3307091636, 0.1792908364,
    ],
  ],
  [
    "CosineAnnealingWarmRestarts",
    (of) => new CosineAnnealingWarmRestarts(of, { t0: 3, tMult: 2, etaMin: 0.01 }),
    [
      0.5, 0.3775, 0.1325, 0.5, 0.4671762239, 0.3775, 0.255, 0.1325, 0.0428237761, 0.5, 0.4916518274, 0.4671762239,
      0.4282411614, 0.3775,
    ],
  ],
  [
    "CosineAnnealingWarmRestarts of equal periods",
    (of) => new CosineAnnealingWarmRestarts(of, { t0: 4 }),
    [
      0.5, 0.4267766953, 0.25, 0.0732233047, 0.5, 0.4267766953, 0.25, 0.0732233047, 0.5, 0.4267766953, 0.25,
      0.0732233047, 0.5, 0.4267766953,
    ],
  ],
  [
    "OneCycleLR",
    (of) => new OneCycleLR(of, { maxLearningRate: 0.5, totalSteps: 14, cycleMomentum: false }),
    [
      0.02, 0.1266631441, 0.3518440238, 0.4953884673, 0.4918237485, 0.4595221881, 0.405872827, 0.3363419182,
      0.2580138623, 0.1788693879, 0.1069724071, 0.0496483959, 0.0127380123, 2e-6,
    ],
  ],
  [
    "OneCycleLR in three linear phases",
    (of) =>
      new OneCycleLR(of, {
        maxLearningRate: 0.5,
        totalSteps: 14,
        threePhase: true,
        annealStrategy: "linear",
        pctStart: 0.4,
        cycleMomentum: false,
      }),
    [
      0.02, 0.1243478261, 0.2286956522, 0.3330434783, 0.4373913043, 0.4582608696, 0.3539130435, 0.2495652174,
      0.1452173913, 0.0408695652, 0.0157898947, 0.0105272632, 0.0052646316, 2e-6,
    ],
  ],
  [
    "SequentialLR",
    (of) => {
      const warmUp = new LinearLR(of, { startFactor: 0.1, totalIters: 4 });
      return new SequentialLR(of, [warmUp, new ExponentialLR(of, 0.9)], [4]);
    },
    [
      0.05, 0.1625, 0.275, 0.3875, 0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245, 0.2657205, 0.23914845, 0.215233605,
      0.1937102445,
    ],
  ],
];

test.each(pytorch)("%s gives PyTorch's learning rates", (_, make, expected) => {
  const of = optimizer();
  const scheduler = make(of);
  const got: number[] = [];
  for (let step = 0; step < expected.length; step++) {
    if (step > 0) scheduler.step();
    got.push(of.groups[0]!.learningRate);
  }
  // PyTorch's are printed to 10 decimals.
  for (const [step, rate] of expected.entries())
    expect(Math.abs(got[step]! - rate), `step ${step}`).toBeLessThan(1e-10);
});

test.each([
  [
    "two phases",
    {},
    [
      0.95, 0.9277785117, 0.8808658284, 0.850960736, 0.8516352568, 0.8580955948, 0.8688255099, 0.8827317473,
      0.8983974211, 0.9142263793, 0.928605833, 0.9400706811, 0.9474527874, 0.95,
    ],
  ],
  [
    "three linear phases",
    { threePhase: true, annealStrategy: "linear", pctStart: 0.4, baseMomentum: 0.8, maxMomentum: 0.9 },
    [
      0.9, 0.8782608696, 0.8565217391, 0.8347826087, 0.8130434783, 0.8086956522, 0.8304347826, 0.852173913,
      0.8739130435, 0.8956521739, 0.9, 0.9, 0.9, 0.9,
    ],
  ],
] as const)("OneCycleLR cycles the momentum as PyTorch's in %s", (_, options, expected) => {
  const group: OptimizerGroup = { parameters: [], spec: sgd({ momentum: 0.9 }), learningRate: 0.5 };
  const scheduler = new OneCycleLR({ groups: [group] }, { maxLearningRate: 0.5, totalSteps: 14, ...options });
  for (const [step, momentum] of expected.entries()) {
    if (step > 0) scheduler.step();
    expect(Math.abs(group.momentum! - momentum), `step ${step}`).toBeLessThan(1e-10);
  }
});

test("ReduceLROnPlateau gives PyTorch's learning rates", () => {
  const of = optimizer();
  const scheduler = new ReduceLROnPlateau(of, { factor: 0.5, patience: 1, cooldown: 1, threshold: 0.1 });
  const rates = [1, 0.95, 0.96, 0.97, 0.98, 0.99, 0.5, 0.49, 0.48, 0.47, 0.46, 0.45].map((metric) => {
    scheduler.step(metric);
    return of.groups[0]!.learningRate;
  });
  expect(rates).toEqual([0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.03125]);
});

test("a schedule goes on from its state, and groups keep their own base", () => {
  const of = {
    groups: [0.5, 0.1].map((learningRate) => ({ parameters: [], spec: sgd({ learningRate }), learningRate })),
  };
  const first = new ExponentialLR(of, 0.5);
  first.step();
  first.step();
  const state = first.stateDict();
  const second = new ExponentialLR(of, 0.5);
  expect(second.getLastLr()).toEqual([0.5, 0.1]);
  second.loadStateDict(state);
  expect(second.getLastLr()).toEqual([0.125, 0.025]);
});

test("impossible schedules are refused", () => {
  const of = optimizer();
  expect(() => new SequentialLR(of, [new ExponentialLR(of, 0.9)], [1, 2])).toThrow(
    "The sequence has 1 schedules and 2 milestones; expected one milestone between each two.",
  );
  expect(() => new OneCycleLR(of, { maxLearningRate: 1, totalSteps: 1 })).toThrow(
    "OneCycleLR cycles the momentum, and the optimizer sgd has none here: give it one, or OneCycleLR cycleMomentum: false.",
  );
  const cycle = new OneCycleLR(of, { maxLearningRate: 1, totalSteps: 1, cycleMomentum: false });
  expect(() => cycle.step()).toThrow("The one-cycle schedule has 1 steps; step 1 is behind its end.");
});

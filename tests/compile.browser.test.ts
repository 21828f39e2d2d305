import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../src/gpu";
import { BatchNorm1d, Dropout, Linear, ReLU, Sequential, withDraws } from "../src/nn";
import { Adam } from "../src/optim";
import { FlatOptimizer } from "../src/optim/flatOptimizer";
import { adam } from "../src/optim/spec";
import {
  accumulate_,
  autocast,
  checkpoint,
  compile,
  copy_,
  crossEntropy,
  exp,
  FlatParameters,
  flush,
  manualSeed,
  mul,
  noGrad,
  rand,
  setDefaultDevice,
  sum,
  type Tensor,
  tensor,
  zeroGradients,
  zeros,
} from "../src/tensor";
import { currentRecording } from "../src/tensor/apply";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

const batch = (seed: number, rows = 6) => ({
  x: tensor(
    Float32Array.from({ length: rows * 9 }, (_, i) => Math.fround(Math.sin(seed * 31 + i))),
    { shape: [rows, 9] },
  ),
  y: tensor(Int32Array.from({ length: rows }, (_, i) => (seed + i) % 4)),
});

/** Six steps of a seeded MLP with Adam; losses, weights, and how often the step's function ran. */
async function training(isCompiled: boolean) {
  manualSeed(11);
  const model = new Sequential(
    new Linear(9, 12),
    new BatchNorm1d(12),
    new ReLU(),
    new Dropout(0.25),
    new Linear(12, 4),
  );
  const optimizer = new Adam(model.parameters(), { learningRate: 0.02 });
  let runs = 0;
  let recorded = 0;
  const plain = (x: Tensor, y: Tensor) => {
    runs += 1;
    optimizer.zeroGrad();
    const loss = crossEntropy(model.forward(x), y);
    loss.backward();
    optimizer.step();
    return { loss, scores: model.forward(x).detach() };
  };
  const step = isCompiled ? compile(plain) : plain;
  const values: unknown[] = [];
  for (let s = 0; s < 6; s++) {
    for (const group of optimizer.groups) group.learningRate = 0.02 / (s + 1);
    const { x, y } = batch(s);
    const { loss, scores } = withDraws({ seed: 3, step: s, firstRow: 0 }, () => step(x, y));
    if (isCompiled && s >= 2) recorded += currentRecording().graph.nodes.length;
    scores.keep();
    await flush();
    values.push(await loss.item(), await scores.data());
  }
  for (const [, tensor] of model.stateDict()) values.push(await tensor.data());
  return { values, runs, recorded };
}

test("a compiled step of an MLP with dropout, batch norm and Adam gives the bits of the plain one, and records nothing when run again", async () => {
  const plain = await training(false);
  const compiled = await training(true);
  expect(compiled.values).toEqual(plain.values);
  expect(new Set(plain.values.slice(0, 12).map(String)).size).toBe(12);
  // The first call makes the gradients, so the second is another step.
  expect([plain.runs, compiled.runs, compiled.recorded]).toEqual([6, 2, 0]);
});

test("random numbers advance as they do without compile", async () => {
  const step = () => mul(rand([5]), 2);
  const values = async (run: () => Tensor) => {
    manualSeed(4);
    const drawn: unknown[] = [];
    for (let i = 0; i < 4; i++) drawn.push(await run().data());
    return drawn;
  };
  const plain = await values(step);
  expect(await values(compile(step))).toEqual(plain);
  expect(new Set(plain.map(String)).size).toBe(4);
});

test("with flat parameters a call gives the plain step's bits, and creates nothing on the GPU after warm-up", async () => {
  const train = async (isCompiled: boolean) => {
    const w = tensor(new Float32Array(36).fill(0.1), { shape: [4, 9], requiresGrad: true });
    const flat = new FlatParameters([["w", w]]);
    const optimizer = new FlatOptimizer(adam({ learningRate: 0.05 }), flat);
    const plain = (x: Tensor, y: Tensor) => {
      flat.zeroGradients();
      const loss = crossEntropy(x.matmul(w.t()), y);
      loss.backward();
      optimizer.step();
      return loss;
    };
    const step = isCompiled ? compile(plain) : plain;
    const { x, y } = batch(0);
    const [first, second] = [await x.data(), await batch(1).x.data()];
    const losses: number[] = [];
    let before = device.stats.snapshot();
    for (let s = 0; s < 12; s++) {
      if (s === 4) before = device.stats.snapshot();
      x.write(s % 2 ? second : first);
      losses.push(await step(x, y).item());
    }
    const after = device.stats.snapshot();
    const created = [
      after.buffers - before.buffers,
      after.pipelines - before.pipelines,
      after.bindGroups - before.bindGroups,
    ];
    return { losses, created, steps: optimizer.steps };
  };
  const compiled = await train(true);
  expect(compiled).toEqual(await train(false));
  expect(compiled).toMatchObject({ created: [0, 0, 0], steps: 12 });
  expect(compiled.losses.at(-1)!).toBeLessThan(compiled.losses[1]!);
});

test("shapes, other arguments, modes of modules, gradient mode and autocast have recordings of their own", async () => {
  const layer = new BatchNorm1d(9);
  let runs = 0;
  const step = compile((x: Tensor, factor: number) => {
    runs += 1;
    return mul(layer.forward(x), factor);
  });
  const runsOf = async (rows: number, factor: number) => {
    const { x } = batch(1, rows);
    const before = runs;
    const values = await step(x, factor).data();
    const recorded = runs - before;
    layer.train(layer.training);
    return [recorded, values.length];
  };
  expect(await runsOf(4, 2)).toEqual([1, 36]);
  expect(await runsOf(4, 2)).toEqual([0, 36]);
  expect(await runsOf(5, 2)).toEqual([1, 45]);
  expect(await runsOf(5, 3)).toEqual([1, 45]);
  layer.eval();
  expect(await runsOf(5, 3)).toEqual([1, 45]);
  layer.train();
  expect(await runsOf(5, 3)).toEqual([0, 45]);
  noGrad(() => step(batch(1, 5).x, 3));
  expect(runs).toBe(5);
  autocast({ dtype: "bfloat16" }, () => step(batch(1, 5).x, 3));
  expect(runs).toBe(6);
});

test("arguments that lie in one memory, or in a parameter's, are not taken for others", async () => {
  const w = tensor([1, 2, 3]);
  const step = compile((a: Tensor, b: Tensor) => {
    copy_(w, mul(a, 2));
    return mul(b, w);
  });
  const a = tensor([1, 1, 1]);
  const b = tensor([5, 6, 7]);
  expect(await step(a, b).array()).toEqual([10, 12, 14]);
  expect(await step(b, b).array()).toEqual([50, 72, 98]);
  expect(await step(a, a).array()).toEqual([2, 2, 2]);
  expect(await step(a, w).array()).toEqual([4, 4, 4]);
  expect(await step(w, b).array()).toEqual([20, 24, 28]);
  expect(await step(a, b).array()).toEqual([10, 12, 14]);
});

test("arguments may be results, also of the call before, and results may be read later", async () => {
  const step = compile((a: Tensor) => [sum(a), mul(a, 2), a] as const);
  let [total, doubled, same] = step(mul(tensor([1, 2]), 1));
  const totals = [total];
  for (let i = 0; i < 3; i++) {
    [total, doubled, same] = step(doubled);
    totals.push(total);
  }
  expect(await Promise.all(totals.map((one) => one.item()))).toEqual([3, 6, 12, 24]);
  expect([await doubled.array(), await same.array()]).toEqual([
    [16, 32],
    [8, 16],
  ]);
});

test("random numbers in a checkpoint advance, and repeat in its backward pass", async () => {
  const values = async (wrap: (step: () => Tensor) => () => Tensor) => {
    manualSeed(8);
    const w = tensor([1, 2, 3], { requiresGrad: true });
    const step = wrap(() => {
      zeroGradients([w]);
      const loss = sum(checkpoint((a) => exp(mul(rand([3]), mul(a, a))), w));
      loss.backward();
      return loss;
    });
    const all: unknown[] = [];
    for (let i = 0; i < 4; i++) all.push(await step().item(), await w.grad!.array());
    return all;
  };
  const plain = await values((step) => step);
  expect(await values(compile)).toEqual(plain);
  expect(new Set(plain.map(String)).size).toBe(8);
});

test("a call that fails is told by the next flush, and by its results", async () => {
  const own = await requestDevice();
  setDefaultDevice(own);
  const x = tensor([1, 2]);
  const step = compile((a: Tensor) => ({ doubled: mul(a, 2), total: sum(a) }));
  const first = step(x);
  expect([await first.doubled.array(), await first.total.item()]).toEqual([[2, 4], 3]);
  own.destroy();
  await own.lost;
  const { doubled, total } = step(x);
  await expect(flush()).rejects.toThrow("The GPU device was destroyed.");
  await expect(doubled.array()).rejects.toThrow("The GPU device was destroyed.");
  await expect(total.item()).rejects.toThrow("The GPU device was destroyed.");
  setDefaultDevice(device);
  await flush();
});

test("a step that throws changes nothing, and can be called again", async () => {
  const w = tensor([1, 2], { requiresGrad: true });
  let fails = true;
  const step = compile((x: Tensor) => {
    accumulate_(w, x);
    sum(mul(w, w)).backward();
    if (fails) throw new Error("not yet");
    return mul(w, 1);
  });
  expect(() => step(tensor([1, 1]))).toThrow("not yet");
  expect([await w.array(), w.grad]).toEqual([[1, 2], null]);
  fails = false;
  expect(await step(tensor([1, 1])).array()).toEqual([2, 3]);
  expect(await w.grad!.array()).toEqual([4, 6]);
});

test("what can't be run again is a sentence", async () => {
  const x = tensor([1, 2]);
  const y = tensor([0]);
  const total = sum(x);
  await flush();
  const calls: [call: () => unknown, message: string][] = [
    [compile(async () => {}), "the step is asynchronous"],
    [compile(() => ({ loss: 1 })), "the step returns [object Object]; expected a tensor"],
    [
      compile(() => {
        total.data().catch(() => {});
        return mul(x, 2);
      }),
      "the step reads a value in the middle, which can't be recorded and run again. Return the tensor, and read it after",
    ],
    [
      compile(() => {
        flush().catch(() => {});
      }),
      "the step flushes in the middle",
    ],
    [compile(() => y.write([1])), "the step writes values from the host"],
    [compile(() => mul(total, 2)), "the step uses a result of one element from before"],
    [
      compile(() => accumulate_(zeros([2]), x)),
      "the step changes in place a tensor that it makes itself (accumulate_)",
    ],
  ];
  for (const [call, message] of calls) expect(call).toThrow(message);
  const scaled = compile((factor: number) => mul(x, factor));
  expect(() => {
    for (let i = 0; i < 30; i++) scaled(i);
  }).toThrow("the step was recorded 16 times, since this changes at each call: the value of argument 0.");
  const parameter = tensor([1, 2], { requiresGrad: true });
  const forgetful = compile(() => {
    parameter.grad = null;
    sum(exp(parameter)).backward();
  });
  expect(() => {
    for (let i = 0; i < 30; i++) forgetful();
  }).toThrow(
    "the step was recorded 16 times, since this changes at each call: float32[2], whether it requires a gradient and has one",
  );
});

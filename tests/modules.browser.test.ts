import { expect, test } from "vitest";
import { readSafetensorsStream, type SafetensorsTensor, writeSafetensorsStream } from "../src/data";
import * as nn from "../src/nn/index";
import * as torch from "../src/tensor/index";
import text from "./reference/modules.json?raw";
import { toTensor } from "./referenceCall";
import { decode, expectClose, type ReferenceTensor } from "./referenceCase";

/** A module of PyTorch's, with what it makes of some inputs (tests/reference/modules.py). */
interface ModuleCase {
  readonly name: string;
  readonly state: Readonly<Record<string, ReferenceTensor>>;
  readonly inputs: readonly ReferenceTensor[];
  readonly outputs: readonly ReferenceTensor[];
  readonly cotangents: readonly ReferenceTensor[];
  readonly gradients: readonly (ReferenceTensor | null)[];
}

const { cases }: { readonly cases: readonly ModuleCase[] } = JSON.parse(text);

type Tensors = readonly torch.Tensor[];
type Call = (inputs: Tensors) => Tensors;
type Made = { readonly module: nn.Module; readonly call: Call };

const plain = (module: nn.Module): Made => ({ module, call: (inputs) => [module.forward(...inputs)] });

function recurrent(module: nn.RNN | nn.LSTM | nn.GRU): Made {
  const call: Call = ([input, ...state]) => {
    const result = module.run(input!, state);
    return [result.output, ...result.state];
  };
  return { module, call };
}

function attention(module: nn.MultiheadAttention): Made {
  const call: Call = ([query, key, value]) => {
    const { output, weights } = module.attend(query!, key!, value!);
    return [output, weights];
  };
  return { module, call };
}

/** A causal mask, and one of keys that the second sequence lacks. */
function masks(): [attnMask: torch.Tensor, keyPaddingMask: torch.Tensor] {
  const places = torch.arange(5);
  return [
    torch.gt(places.unsqueeze(0), places.unsqueeze(1)),
    torch.ge(places.unsqueeze(0), torch.tensor(Int32Array.of(5, 3)).unsqueeze(1)),
  ];
}

function masked(): Made {
  const module = new nn.MultiheadAttention(8, 2, { bias: false, batchFirst: true });
  const call: Call = ([input]) => {
    const [attnMask, keyPaddingMask] = masks();
    const { output, weights } = module.attend(input!, input!, input!, { attnMask, keyPaddingMask });
    return [output, weights];
  };
  return { module, call };
}

const feedForward = { dimFeedforward: 16, dropout: 0 };

const made: Readonly<Record<string, () => Made>> = {
  RNN: () => recurrent(new nn.RNN(3, 4)),
  "RNN of ReLUs, in two layers and directions": () =>
    recurrent(new nn.RNN(3, 4, { numLayers: 2, nonlinearity: "relu", bidirectional: true })),
  "LSTM in two layers and directions": () =>
    recurrent(new nn.LSTM(3, 4, { numLayers: 2, bidirectional: true, batchFirst: true })),
  "LSTM with a state": () => recurrent(new nn.LSTM(3, 4, { bias: false })),
  "GRU in two layers": () => recurrent(new nn.GRU(3, 4, { numLayers: 2 })),
  LSTMCell: () => {
    const module = new nn.LSTMCell(3, 4);
    return { module, call: ([input, ...state]) => module.step(input!, state) };
  },
  GRUCell: () => plain(new nn.GRUCell(3, 4)),
  MultiheadAttention: () => attention(new nn.MultiheadAttention(8, 2)),
  "MultiheadAttention of other features, batches first": () =>
    attention(new nn.MultiheadAttention(8, 2, { kdim: 4, vdim: 6, batchFirst: true })),
  "MultiheadAttention with masks": masked,
  TransformerEncoderLayer: () => plain(new nn.TransformerEncoderLayer(8, 2, feedForward)),
  "TransformerEncoder, norms first": () => {
    const options = { ...feedForward, activation: "gelu", batchFirst: true, normFirst: true } as const;
    return plain(
      new nn.TransformerEncoder(() => new nn.TransformerEncoderLayer(8, 2, options), 2, new nn.LayerNorm(8)),
    );
  },
  TransformerDecoderLayer: () => plain(new nn.TransformerDecoderLayer(8, 2, feedForward)),
  Conv1d: () => plain(new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1, groups: 2 })),
  ConvTranspose1d: () => plain(new nn.ConvTranspose1d(4, 6, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2 })),
  ConvTranspose2d: () => plain(new nn.ConvTranspose2d(3, 2, [3, 2], { stride: 2 })),
  Bilinear: () => plain(new nn.Bilinear(3, 4, 5)),
  InstanceNorm1d: () => plain(new nn.InstanceNorm1d(3, { affine: true })),
  "InstanceNorm2d with running moments": () =>
    plain(new nn.InstanceNorm2d(3, { affine: true, trackRunningStats: true }).eval()),
  Embedding: () => plain(new nn.Embedding(7, 3)),
  EmbeddingBag: () => plain(new nn.EmbeddingBag(7, 3, { mode: "mean" })),
  PReLU: () => plain(new nn.PReLU(3)),
  "TransformerEncoderLayer with masks": () => {
    const module = new nn.TransformerEncoderLayer(8, 2, { ...feedForward, batchFirst: true });
    return { module, call: ([input]) => [module.forward(input!, ...masks())] };
  },
  "TransformerDecoderLayer with masks": () => {
    const module = new nn.TransformerDecoderLayer(8, 2, { ...feedForward, batchFirst: true });
    const call: Call = ([target, memory]) => {
      const [attnMask, keyPaddingMask] = masks();
      return [module.forward(target!, memory!, attnMask, null, keyPaddingMask, keyPaddingMask)];
    };
    return { module, call };
  },
  "MultiheadAttention without batches": () => attention(new nn.MultiheadAttention(8, 2)),
  LPPool1d: () => plain(new nn.LPPool1d(3, 3, { stride: 2 })),
  LPPool2d: () => plain(new nn.LPPool2d(2, [2, 3], { ceilMode: true })),
  MaxUnpool1d: () => plain(new nn.MaxUnpool1d(2)),
  MaxUnpool2d: () => plain(new nn.MaxUnpool2d([2, 3], { stride: [1, 2], padding: [0, 1] })),
  CosineSimilarity: () => plain(new nn.CosineSimilarity()),
  PairwiseDistance: () => plain(new nn.PairwiseDistance(3, 1e-6, true)),
};

test.each(cases.map((of) => [of.name, of] as const))("%s is PyTorch's", async (name, of) => {
  const { module, call } = made[name]?.() ?? expect.fail(`There is no module for the case ${name}.`);
  const state = Object.entries(of.state).map(
    ([key, value]) => [key, { shape: value.shape, data: decode(value) }] as const,
  );
  expect([...module.stateDict().keys()].sort()).toEqual(Object.keys(of.state).sort());
  module.loadStateDict(state);
  const inputs = of.inputs.map((input, index) => toTensor(input, of.gradients[index] !== null));
  const outputs = call(inputs);
  expect(outputs.length).toBe(of.outputs.length);
  if (outputs.some(({ requiresGrad }) => requiresGrad))
    for (const [index, output] of outputs.entries()) output.backward(toTensor(of.cotangents[index]!));
  const compared = [
    ...of.outputs.map((expected, index) => ({ what: `output ${index}`, tensor: outputs[index]!, expected })),
    ...of.gradients.flatMap((expected, index) => {
      const tensor = inputs[index]?.grad;
      return expected && tensor ? [{ what: `the gradient of input ${index}`, tensor, expected }] : [];
    }),
  ];
  expect(compared.length).toBe(of.outputs.length + of.gradients.filter((gradient) => gradient !== null).length);
  const values = await Promise.all(compared.map(({ tensor }) => tensor.data()));
  for (const [index, { what, tensor, expected }] of compared.entries())
    expectClose(what, tensor.shape, values[index]!, expected);
});

test("an embedding's gradient adds the uses of a row", async () => {
  const weight = torch.zeros([5, 2]);
  const table = torch.tensor(await weight.data(), { shape: [5, 2], requiresGrad: true });
  torch.embedding(torch.tensor(Int32Array.of(3, 3)), table).backward(torch.ones([2, 2]));
  expect(await table.grad!.array()).toEqual([
    [0, 0],
    [0, 0],
    [0, 0],
    [2, 2],
    [0, 0],
  ]);
});

test("an embedding's padding gets no gradient, and an index out of range gives NaN", async () => {
  const table = torch.tensor(Float32Array.of(1, 2, 3), { shape: [3, 1], requiresGrad: true });
  const rows = torch.embedding(torch.tensor(Int32Array.of(0, 2, 0, 3, -1)), table, { paddingIdx: 0 });
  rows.backward(torch.ones([5, 1]));
  expect(await rows.data()).toEqual(Float32Array.of(1, 3, 1, Number.NaN, Number.NaN));
  expect(await table.grad!.data()).toEqual(Float32Array.of(0, 0, 1));
});

test("dropout keeps the mean, and is nothing in evaluation", async () => {
  torch.manualSeed(3);
  const layer = new nn.Dropout(0.25);
  const values = await layer.forward(torch.ones([4096])).data();
  const scale = Math.fround(1 / 0.75);
  expect(values.every((value) => value === 0 || value === scale)).toBe(true);
  // The number kept has a standard deviation of 27.7.
  expect(Math.abs(values.filter((value) => value > 0).length - 3072)).toBeLessThan(140);
  const input = torch.ones([4]);
  expect(layer.eval().forward(input)).toBe(input);
});

test("a part of a batch drops what the whole batch would", async () => {
  const layer = new nn.Sequential(new nn.Dropout(0.5), new nn.Dropout2d(0.5));
  const at = (firstRow: number, rows: number, step: number) =>
    nn.withDraws({ seed: 5, step, firstRow }, () => layer.forward(torch.ones([rows, 8, 3, 1]))).data();
  const whole = await at(0, 6, 7);
  expect(new Set(whole)).toEqual(new Set([0, 4]));
  expect(await at(2, 3, 7)).toEqual(whole.slice(2 * 24, 5 * 24));
  expect(await at(0, 6, 8)).not.toEqual(whole);
});

test("hooks see and change a layer's inputs and outputs until they are taken away", async () => {
  const layer = new nn.Identity();
  const model = new nn.Sequential(layer);
  const seen: number[] = [];
  const removeBefore = layer.registerForwardPreHook((_, [input]) => [input!.add(1)]);
  const removeAfter = layer.registerForwardHook((_, inputs, output) => {
    seen.push(inputs.length);
    return output.mul(10);
  });
  expect(await model.forward(torch.tensor([1, 2])).array()).toEqual([20, 30]);
  removeBefore();
  removeAfter();
  expect(await model.forward(torch.tensor([1, 2])).array()).toEqual([1, 2]);
  expect(seen).toEqual([1]);
});

test("attention without weights is that with them, causal with padding too", async () => {
  const module = new nn.MultiheadAttention(8, 2, { batchFirst: true });
  const input = torch.randn([2, 5, 8], { seed: 1, stream: [0, 0] });
  const [attnMask, keyPaddingMask] = masks();
  const [both, ...others] = await Promise.all(
    [
      module.attend(input, input, input, { attnMask, keyPaddingMask }).output,
      module.forward(input, input, input, attnMask, keyPaddingMask),
      module.attend(input, input, input, { isCausal: true, keyPaddingMask }).output,
    ].map((output) => output.data()),
  );
  for (const values of others)
    for (const [i, value] of values.entries()) expect(Math.abs(value - both![i]!)).toBeLessThan(1e-6);
});

test("backward hooks see and change the gradients of a layer's own call until they are taken away", async () => {
  const layer = new nn.Linear(2, 1, { bias: false });
  layer.weight.write([3, -5]);
  const seen: (readonly torch.Tensor[])[] = [];
  const removeBefore = layer.registerFullBackwardPreHook((_, gradOutput) => gradOutput.mul(10));
  const removeAfter = layer.registerFullBackwardHook((module, [gradInput], gradOutput) => {
    expect(module).toBe(layer);
    seen.push([gradInput!, gradOutput]);
    return [gradInput!.add(1)];
  });
  const input = torch.tensor([[1, 2]], { requiresGrad: true });
  // The input's other use isn't the layer's.
  torch
    .sum(layer.forward(input))
    .add(torch.sum(input.mul(100)))
    .backward();
  const values = [input.grad!, layer.weight.grad!, ...seen.flat()].map((tensor) => tensor.data());
  expect(await Promise.all(values)).toEqual([
    Float32Array.of(131, 51),
    Float32Array.of(10, 20),
    Float32Array.of(30, -50),
    Float32Array.of(10),
  ]);
  removeBefore();
  removeAfter();
  const other = torch.tensor([[1, 2]], { requiresGrad: true });
  torch.sum(layer.forward(other)).backward();
  expect(await other.grad!.array()).toEqual([[3, -5]]);
  expect(seen).toHaveLength(1);
});

test("a backward hook is called where only the weights have gradients", async () => {
  const layer = new nn.Linear(2, 1, { bias: false });
  const seen: unknown[] = [];
  layer.registerFullBackwardHook((_, gradInputs) => void seen.push(gradInputs));
  torch.sum(layer.forward(torch.tensor([[1, 2]]))).backward();
  expect(seen).toEqual([[null]]);
});

test("a module converts to halves and back in place", async () => {
  const layer = new nn.Linear(2, 2);
  const { weight } = layer;
  weight.write([1, 0.1, -2, 1 + 2 ** -12]);
  layer.bias!.write([0, 0]);
  expect([layer.to("float16").weight, weight.dtype]).toEqual([weight, "float16"]);
  const output = await layer.forward(torch.to(torch.tensor([[1, 0]]), "float16")).data();
  expect([...output]).toEqual([1, -2]);
  layer.to("float32");
  const [one, tenth, two, near] = await weight.data();
  expect([one, two, near]).toEqual([1, -2, 1]);
  expect(tenth).toBe(0.0999755859375);
  torch.sum(layer.forward(torch.tensor([[1, 0]]))).backward();
  expect(await weight.grad!.array()).toEqual([
    [1, 0],
    [1, 0],
  ]);
});

test("root mean square norm follows its formula", async () => {
  const norm = new nn.RMSNorm(4, { eps: 0 });
  norm.weight?.write([1, 2, 1, 1]);
  // The mean square of [1, -1, 7, 7] is 25.
  const output = await norm.forward(torch.tensor([[1, -1, 7, 7]])).data();
  for (const [i, want] of [0.2, -0.4, 1.4, 1.4].entries()) expect(output[i]).toBeCloseTo(want, 6);
});

test("a model's state goes through a stream of safetensors and comes back to the bit", async () => {
  const make = () =>
    new nn.Sequential(new nn.Conv2d(1, 2, 3), new nn.BatchNorm2d(2), new nn.Flatten(), new nn.Linear(8, 3));
  const [from, to] = [make(), make()];
  const { tensors } = await readSafetensorsStream(writeSafetensorsStream(from.stateDict(), { format: "pt" }));
  const state = new Map<string, SafetensorsTensor>();
  for await (const [name, tensor] of tensors) state.set(name, tensor);
  to.loadStateDict(state);
  const values = (model: nn.Module) => Promise.all([...model.stateDict().values()].map((tensor) => tensor.data()));
  expect(await values(to)).toEqual(await values(from));
});

test("a state in float16 or bfloat16 is converted, not taken for its bits", async () => {
  const layer = new nn.Linear(3, 1, { bias: false });
  for (const [dtype, bits] of [
    ["F16", [0x3c00, 0xc000, 0x3555]],
    ["BF16", [0x3f80, 0xc000, 0x3eab]],
  ] as const) {
    layer.loadStateDict([["weight", { dtype, shape: [1, 3], data: Uint16Array.from(bits) }]]);
    const [one, two, third] = await layer.weight.data();
    expect([one, two]).toEqual([1, -2]);
    // Their significands have 11 and 8 bits.
    expect(Math.abs(third! * 3 - 1)).toBeLessThan(dtype === "F16" ? 2 ** -11 : 2 ** -8);
  }
});

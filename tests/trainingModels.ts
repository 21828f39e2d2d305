import * as nn from "../src/nn/index";
import * as torch from "../src/tensor/index";
import type { Weights } from "./trainingRuns";

/** The sizes of a weight; all of the models' sizes but these follow from their weights' shapes. */
function sizes(weights: Weights, name: string): readonly number[] {
  const weight = weights.get(name);
  if (!weight) throw new Error(`The initial weights lack ${name}; they have ${[...weights.keys()].join(", ")}.`);
  return weight.shape;
}

function linear(weights: Weights, name: string): nn.Linear {
  const [outputs = 0, inputs = 0] = sizes(weights, `${name}.weight`);
  return new nn.Linear(inputs, outputs);
}

const heads = 4;

class Block extends nn.Module {
  readonly ln_1: nn.LayerNorm;
  readonly attn: nn.Linear;
  readonly proj: nn.Linear;
  readonly ln_2: nn.LayerNorm;
  readonly fc: nn.Linear;
  readonly out: nn.Linear;

  constructor(weights: Weights, name: string) {
    super();
    const [features = 0] = sizes(weights, `${name}.ln_1.weight`);
    this.ln_1 = new nn.LayerNorm(features);
    this.attn = linear(weights, `${name}.attn`);
    this.proj = linear(weights, `${name}.proj`);
    this.ln_2 = new nn.LayerNorm(features);
    this.fc = linear(weights, `${name}.fc`);
    this.out = linear(weights, `${name}.out`);
  }

  forward(input: torch.Tensor): torch.Tensor {
    const [batch = 0, places = 0, width = 0] = input.shape;
    const projected = torch.reshape(this.attn.forward(this.ln_1.forward(input)), [
      batch,
      places,
      3,
      heads,
      width / heads,
    ]);
    const [q, k, v] = [0, 1, 2].map((part) => projected.select(2, part).transpose(1, 2));
    const attended = torch.scaledDotProductAttention(q!, k!, v!, { isCausal: true });
    const joined = torch.reshape(attended.transpose(1, 2), [batch, places, width]);
    const middle = input.add(this.proj.forward(joined));
    return middle.add(this.out.forward(this.fc.forward(this.ln_2.forward(middle)).gelu()));
  }
}

/** The output layer is tied to the table of tokens. */
class Gpt extends nn.Module {
  readonly wte: nn.Embedding;
  readonly wpe: nn.Embedding;
  readonly blocks: nn.ModuleList;
  readonly lnF: nn.LayerNorm;

  constructor(weights: Weights) {
    super();
    const [vocabulary = 0, features = 0] = sizes(weights, "wte.weight");
    const [places = 0] = sizes(weights, "wpe.weight");
    let count = 0;
    while (weights.has(`blocks.${count}.attn.weight`)) count += 1;
    this.wte = new nn.Embedding(vocabulary, features);
    this.wpe = new nn.Embedding(places, features);
    this.blocks = new nn.ModuleList(Array.from({ length: count }, (_, i) => new Block(weights, `blocks.${i}`)));
    this.lnF = new nn.LayerNorm(features);
  }

  /** @returns [rows places, vocabulary]. */
  forward(tokens: torch.Tensor): torch.Tensor {
    const places = this.wpe.forward(torch.arange(tokens.size(1)));
    const hidden = this.blocks.items.reduce(
      (value, block) => block.forward(value),
      this.wte.forward(tokens).add(places),
    );
    return torch.linear(this.lnF.forward(hidden), this.wte.weight).reshape(tokens.numel, this.wte.weight.size(0));
  }
}

/** The models of tests/reference/README.md, in whatever sizes the weights have. */
const models: Readonly<Record<string, (weights: Weights) => nn.Module>> = {
  mlp: (weights) =>
    new nn.Sequential(
      new nn.Flatten(),
      linear(weights, "1"),
      new nn.ReLU(),
      linear(weights, "3"),
      new nn.GELU(),
      linear(weights, "5"),
    ),
  cnn: (weights) => {
    const [first = 0, inputs = 0, side = 0] = sizes(weights, "0.weight");
    const [second = 0, , otherSide = 0] = sizes(weights, "4.weight");
    return new nn.Sequential(
      new nn.Conv2d(inputs, first, side, { padding: 1 }),
      new nn.BatchNorm2d(first),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Conv2d(first, second, otherSide, { stride: 2 }),
      new nn.ReLU(),
      new nn.AvgPool2d(2),
      new nn.Flatten(),
      linear(weights, "8"),
    );
  },
  gpt: (weights) => new Gpt(weights),
};

/** A model of a kind with these weights. @throws Error naming the kinds that there are. */
export function makeModel(kind: string, weights: Weights): nn.Module {
  const make = models[kind];
  if (!make) throw new Error(`The model ${kind} can't be built; there are ${Object.keys(models).join(", ")}.`);
  const model = make(weights);
  model.loadStateDict(weights);
  return model;
}

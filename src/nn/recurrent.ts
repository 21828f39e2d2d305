import {
  add,
  cat,
  linear,
  mul,
  narrow,
  OperatorError,
  relu,
  select,
  sigmoid,
  stack,
  sub,
  type Tensor,
  tanh,
  transpose,
  unsqueeze,
  zeros,
} from "../tensor/index";
import { dropout } from "./dropout";
import { uniform_ } from "./init";
import { emptyParameter, type LinearOptions } from "./layers";
import { Module } from "./module";

/** One step: from the input's and the hidden state's parts of the gates, and the state, to the new state. */
type Step = (ofInput: Tensor, ofHidden: Tensor, state: readonly Tensor[]) => Tensor[];

/** How a kind of recurrent network steps. The first tensor of its state is its output. */
interface Kind {
  readonly gates: number;
  readonly states: number;
  readonly step: Step;
}

const gatesOf = (of: Tensor, count: number): Tensor[] => {
  const size = of.size(-1) / count;
  return Array.from({ length: count }, (_, gate) => narrow(of, -1, gate * size, size));
};

const elman = (activation: (input: Tensor) => Tensor): Kind => ({
  gates: 1,
  states: 1,
  step: (ofInput, ofHidden) => [activation(add(ofInput, ofHidden))],
});

const kinds = {
  tanh: elman(tanh),
  relu: elman(relu),
  /** Gates i, f, g, o (Hochreiter and Schmidhuber 1997). */
  lstm: {
    gates: 4,
    states: 2,
    step(ofInput, ofHidden, [, cell]) {
      const [i, f, g, o] = gatesOf(add(ofInput, ofHidden), 4) as [Tensor, Tensor, Tensor, Tensor];
      const next = add(mul(sigmoid(f), cell!), mul(sigmoid(i), tanh(g)));
      return [mul(sigmoid(o), tanh(next)), next];
    },
  },
  /** Gates r, z, n (Cho et al. 2014). */
  gru: {
    gates: 3,
    states: 1,
    step(ofInput, ofHidden, [hidden]) {
      const [ir, iz, inew] = gatesOf(ofInput, 3) as [Tensor, Tensor, Tensor];
      const [hr, hz, hnew] = gatesOf(ofHidden, 3) as [Tensor, Tensor, Tensor];
      const candidate = tanh(add(inew, mul(sigmoid(add(ir, hr)), hnew)));
      return [add(candidate, mul(sigmoid(add(iz, hz)), sub(hidden!, candidate)))];
    },
  },
} as const satisfies Record<string, Kind>;

type KindName = keyof typeof kinds;

interface Weights {
  readonly ih: Tensor;
  readonly hh: Tensor;
  readonly biasIh: Tensor | null;
  readonly biasHh: Tensor | null;
}

function weightsOf(kind: Kind, inputSize: number, hiddenSize: number, hasBias: boolean): Weights {
  const bound = 1 / Math.sqrt(hiddenSize);
  const drawn = (...shape: number[]) => uniform_(emptyParameter(...shape), -bound, bound);
  const rows = kind.gates * hiddenSize;
  return {
    ih: drawn(rows, inputSize),
    hh: drawn(rows, hiddenSize),
    biasIh: hasBias ? drawn(rows) : null,
    biasHh: hasBias ? drawn(rows) : null,
  };
}

const named = ({ ih, hh, biasIh, biasHh }: Weights, suffix: string): [string, Tensor][] => [
  [`weight_ih${suffix}`, ih],
  [`weight_hh${suffix}`, hh],
  ...(biasIh ? [[`bias_ih${suffix}`, biasIh] as [string, Tensor]] : []),
  ...(biasHh ? [[`bias_hh${suffix}`, biasHh] as [string, Tensor]] : []),
];

export interface RecurrentOptions extends LinearOptions {
  /** Default: 1. */
  readonly numLayers?: number;
  /** Whether tensors are [N, L, ...] instead of [L, N, ...]. Default: false. */
  readonly batchFirst?: boolean;
  /** Of what goes from a layer to the next, the part that training drops. Default: 0. */
  readonly dropout?: number;
  /** Whether each layer also runs from the end to the beginning. Default: false. */
  readonly bidirectional?: boolean;
}

export interface RecurrentResult {
  /** [L, N, directions hiddenSize], or batches first: the last layer's hidden state of every step. */
  readonly output: Tensor;
  /** The last step's state of every layer and direction, [layers directions, N, hiddenSize] each: h, and c of an LSTM. */
  readonly state: readonly Tensor[];
}

/** Layers of a recurrent network over sequences. */
class Recurrent extends Module {
  /** By layer, each direction's. */
  readonly #weights: readonly (readonly Weights[])[];
  readonly #kind: Kind;

  constructor(
    kind: KindName,
    readonly inputSize: number,
    readonly hiddenSize: number,
    readonly options: RecurrentOptions,
  ) {
    super();
    const { numLayers = 1, bias = true, bidirectional = false } = options;
    this.#kind = kinds[kind];
    const directions = bidirectional ? 2 : 1;
    this.#weights = Array.from({ length: numLayers }, (_, layer) => {
      const size = layer === 0 ? inputSize : directions * hiddenSize;
      return Array.from({ length: directions }, () => weightsOf(this.#kind, size, hiddenSize, bias));
    });
  }

  protected override ownTensors(): [string, Tensor][] {
    return this.#weights.flatMap((directions, layer) =>
      directions.flatMap((weights, direction) => named(weights, `_l${layer}${direction === 1 ? "_reverse" : ""}`)),
    );
  }

  /** @returns the output alone; `run` gives the state too. */
  forward(input: Tensor, ...state: Tensor[]): Tensor {
    return this.run(input, state).output;
  }

  /**
   * @param input [L, N, inputSize], or batches first, or [L, inputSize].
   * @param state [layers directions, N, hiddenSize] each: h, and c of an LSTM. Default: zeros.
   */
  run(input: Tensor, state: readonly Tensor[] = []): RecurrentResult {
    const { batchFirst = false, dropout: p = 0 } = this.options;
    if (input.ndim === 2) {
      const dim = batchFirst ? 0 : 1;
      const result = this.run(
        unsqueeze(input, dim),
        state.map((part) => unsqueeze(part, 1)),
      );
      return { output: result.output.squeeze(dim), state: result.state.map((part) => part.squeeze(1)) };
    }
    if (input.ndim !== 3 || input.shape[2] !== this.inputSize)
      throw new OperatorError(
        this.constructor.name,
        `the input has the shape [${input.shape.join(", ")}]; expected 3 dimensions, of which the last is ${this.inputSize}`,
      );
    if (state.length !== 0 && state.length !== this.#kind.states)
      throw new OperatorError(
        this.constructor.name,
        `the state has ${state.length} tensors; expected ${this.#kind.states}`,
      );
    let value = batchFirst ? transpose(input, 0, 1) : input;
    const batch = value.size(1);
    const last: Tensor[][] = Array.from({ length: this.#kind.states }, () => []);
    let at = 0;
    for (const [layer, directions] of this.#weights.entries()) {
      if (layer > 0) value = dropout(value, p, this.training);
      const outputs = directions.map((weights, direction) => {
        const initial = last.map((_, part) => {
          const given = state[part];
          return given ? select(given, 0, at) : zeros([batch, this.hiddenSize]);
        });
        at += 1;
        const { steps, final } = this.#along(value, weights, initial, direction === 1);
        for (const [part, tensor] of final.entries()) last[part]?.push(tensor);
        return steps;
      });
      value = outputs.length === 1 ? outputs[0]! : cat(outputs, 2);
    }
    const output = batchFirst ? transpose(value, 0, 1) : value;
    return { output, state: last.map((parts) => stack(parts)) };
  }

  /** Runs one direction of one layer over [L, N, ...]. */
  #along(input: Tensor, { ih, hh, biasIh, biasHh }: Weights, initial: Tensor[], isReverse: boolean) {
    const length = input.size(0);
    // The inputs' parts of all steps are one product.
    const ofInputs = linear(input, ih, biasIh);
    const outputs = new Array<Tensor>(length);
    let state: Tensor[] = initial;
    for (let i = 0; i < length; i++) {
      const step = isReverse ? length - 1 - i : i;
      state = this.#kind.step(select(ofInputs, 0, step), linear(state[0]!, hh, biasHh), state);
      outputs[step] = state[0]!;
    }
    return { steps: stack(outputs), final: state };
  }
}

export interface RnnOptions extends RecurrentOptions {
  /** Default: "tanh". */
  readonly nonlinearity?: "tanh" | "relu";
}

/** torch.nn.RNN (Elman 1990): h' = tanh(W_ih x + b_ih + W_hh h + b_hh). */
export class RNN extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RnnOptions = {}) {
    super(options.nonlinearity ?? "tanh", inputSize, hiddenSize, options);
  }
}

/** torch.nn.LSTM, whose state is h and c. */
export class LSTM extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super("lstm", inputSize, hiddenSize, options);
  }
}

/** torch.nn.GRU. */
export class GRU extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super("gru", inputSize, hiddenSize, options);
  }
}

/** One step of a recurrent network. */
class Cell extends Module {
  readonly #kind: Kind;
  readonly #weights: Weights;

  constructor(
    kind: KindName,
    inputSize: number,
    readonly hiddenSize: number,
    { bias = true }: LinearOptions,
  ) {
    super();
    this.#kind = kinds[kind];
    this.#weights = weightsOf(this.#kind, inputSize, hiddenSize, bias);
  }

  protected override ownTensors(): [string, Tensor][] {
    return named(this.#weights, "");
  }

  /** @returns the new hidden state alone; `step` gives all of the state. */
  forward(input: Tensor, ...state: Tensor[]): Tensor {
    return this.step(input, state)[0]!;
  }

  /**
   * @param input [N, inputSize] or [inputSize].
   * @param state [N, hiddenSize] or [hiddenSize] each: h, and c of an LSTM. Default: zeros.
   */
  step(input: Tensor, state: readonly Tensor[] = []): Tensor[] {
    const { ih, hh, biasIh, biasHh } = this.#weights;
    const given = Array.from(
      { length: this.#kind.states },
      (_, part) => state[part] ?? zeros([...input.shape.slice(0, -1), this.hiddenSize]),
    );
    return this.#kind.step(linear(input, ih, biasIh), linear(given[0]!, hh, biasHh), given);
  }
}

export class RNNCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, options: Pick<RnnOptions, "bias" | "nonlinearity"> = {}) {
    super(options.nonlinearity ?? "tanh", inputSize, hiddenSize, options);
  }
}

/** Its state is h and c. */
export class LSTMCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, options: LinearOptions = {}) {
    super("lstm", inputSize, hiddenSize, options);
  }
}

export class GRUCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, options: LinearOptions = {}) {
    super("gru", inputSize, hiddenSize, options);
  }
}

import { gelu, relu, type Tensor } from "../tensor/index";
import { MultiheadAttention } from "./attention";
import { ModuleList } from "./containers";
import { Dropout } from "./dropout";
import { Linear } from "./layers";
import { Module } from "./module";
import { LayerNorm } from "./normalization";

export interface TransformerLayerOptions {
  /** Features between the feed-forward part's layers. Default: 2048. */
  readonly dimFeedforward?: number;
  /** Default: 0.1. */
  readonly dropout?: number;
  /** Default: "relu". */
  readonly activation?: "relu" | "gelu";
  /** Default: 1e-5. */
  readonly layerNormEps?: number;
  /** Whether tensors are [N, L, E] instead of [L, N, E]. Default: false. */
  readonly batchFirst?: boolean;
  /** Whether norms stand before the parts instead of behind them. Default: false. */
  readonly normFirst?: boolean;
}

const activations = { relu, gelu: (input: Tensor) => gelu(input) };

/** What encoder and decoder layers have in common: the feed-forward part, and how a part is joined to its input. */
abstract class TransformerLayer extends Module {
  readonly selfAttn: MultiheadAttention;
  readonly linear1: Linear;
  readonly dropout: Dropout;
  readonly linear2: Linear;

  constructor(
    readonly dModel: number,
    readonly nhead: number,
    readonly options: TransformerLayerOptions,
  ) {
    super();
    const { dimFeedforward = 2048, dropout = 0.1 } = options;
    this.selfAttn = this.newAttention();
    this.linear1 = new Linear(dModel, dimFeedforward);
    this.dropout = new Dropout(dropout);
    this.linear2 = new Linear(dimFeedforward, dModel);
  }

  protected newAttention(): MultiheadAttention {
    const { dropout = 0.1, batchFirst = false } = this.options;
    return new MultiheadAttention(this.dModel, this.nhead, { dropout, batchFirst });
  }

  protected newNorm(): LayerNorm {
    return new LayerNorm(this.dModel, { eps: this.options.layerNormEps ?? 1e-5 });
  }

  protected feedForward(input: Tensor): Tensor {
    const activation = activations[this.options.activation ?? "relu"];
    return this.linear2.forward(this.dropout.forward(activation(this.linear1.forward(input))));
  }

  /** input + part(norm(input)), or norm(input + part(input)). */
  protected joined(input: Tensor, norm: LayerNorm, dropout: Dropout, part: (of: Tensor) => Tensor): Tensor {
    return this.options.normFirst
      ? input.add(dropout.forward(part(norm.forward(input))))
      : norm.forward(input.add(dropout.forward(part(input))));
  }
}

/** torch.nn.TransformerEncoderLayer: self-attention and a feed-forward part. */
export class TransformerEncoderLayer extends TransformerLayer {
  readonly norm1 = this.newNorm();
  readonly norm2 = this.newNorm();
  readonly dropout1: Dropout;
  readonly dropout2: Dropout;

  constructor(dModel: number, nhead: number, options: TransformerLayerOptions = {}) {
    super(dModel, nhead, options);
    this.dropout1 = new Dropout(options.dropout ?? 0.1);
    this.dropout2 = new Dropout(options.dropout ?? 0.1);
  }

  /** @param source [L, N, E]; mask [L, L]: bool where a place may not look, or float32 to be added. */
  forward(source: Tensor, mask: Tensor | null = null, keyPaddingMask: Tensor | null = null): Tensor {
    const attend = (of: Tensor) => this.selfAttn.forward(of, of, of, mask, keyPaddingMask);
    const attended = this.joined(source, this.norm1, this.dropout1, attend);
    return this.joined(attended, this.norm2, this.dropout2, (of) => this.feedForward(of));
  }
}

/** torch.nn.TransformerDecoderLayer: self-attention, attention to the encoder's output, and a feed-forward part. */
export class TransformerDecoderLayer extends TransformerLayer {
  readonly multiheadAttn = this.newAttention();
  readonly norm1 = this.newNorm();
  readonly norm2 = this.newNorm();
  readonly norm3 = this.newNorm();
  readonly dropout1: Dropout;
  readonly dropout2: Dropout;
  readonly dropout3: Dropout;

  constructor(dModel: number, nhead: number, options: TransformerLayerOptions = {}) {
    super(dModel, nhead, options);
    this.dropout1 = new Dropout(options.dropout ?? 0.1);
    this.dropout2 = new Dropout(options.dropout ?? 0.1);
    this.dropout3 = new Dropout(options.dropout ?? 0.1);
  }

  /** @param target [L, N, E], memory [S, N, E]; masks as the encoder layer's. */
  forward(
    target: Tensor,
    memory: Tensor,
    targetMask: Tensor | null = null,
    memoryMask: Tensor | null = null,
    targetKeyPaddingMask: Tensor | null = null,
    memoryKeyPaddingMask: Tensor | null = null,
  ): Tensor {
    const self = this.joined(target, this.norm1, this.dropout1, (of) =>
      this.selfAttn.forward(of, of, of, targetMask, targetKeyPaddingMask),
    );
    const both = this.joined(self, this.norm2, this.dropout2, (of) =>
      this.multiheadAttn.forward(of, memory, memory, memoryMask, memoryKeyPaddingMask),
    );
    return this.joined(both, this.norm3, this.dropout3, (of) => this.feedForward(of));
  }
}

/** Encoder layers one after the other, each made by `layer`. */
export class TransformerEncoder extends Module {
  readonly layers: ModuleList;

  constructor(
    layer: () => TransformerEncoderLayer,
    numLayers: number,
    readonly norm: Module | null = null,
  ) {
    super();
    this.layers = new ModuleList(Array.from({ length: numLayers }, layer));
  }

  forward(source: Tensor, mask: Tensor | null = null, keyPaddingMask: Tensor | null = null): Tensor {
    const output = this.layers.items.reduce(
      (value, layer) => (layer instanceof TransformerEncoderLayer ? layer.forward(value, mask, keyPaddingMask) : value),
      source,
    );
    return this.norm ? this.norm.forward(output) : output;
  }
}

/** Decoder layers one after the other, each made by `layer`. */
export class TransformerDecoder extends Module {
  readonly layers: ModuleList;

  constructor(
    layer: () => TransformerDecoderLayer,
    numLayers: number,
    readonly norm: Module | null = null,
  ) {
    super();
    this.layers = new ModuleList(Array.from({ length: numLayers }, layer));
  }

  forward(target: Tensor, memory: Tensor, targetMask: Tensor | null = null, memoryMask: Tensor | null = null): Tensor {
    const output = this.layers.items.reduce(
      (value, layer) =>
        layer instanceof TransformerDecoderLayer ? layer.forward(value, memory, targetMask, memoryMask) : value,
      target,
    );
    return this.norm ? this.norm.forward(output) : output;
  }
}

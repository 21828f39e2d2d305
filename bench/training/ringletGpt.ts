import { Embedding, LayerNorm, Linear, Module, ModuleList } from "../../src/nn";
import * as torch from "../../src/tensor";
import { gptSizes } from "./workloads";

const { width, heads, layers, places, vocabulary } = gptSizes;

class Block extends Module {
  readonly ln_1 = new LayerNorm(width);
  readonly attn = new Linear(width, 3 * width);
  readonly proj = new Linear(width, width);
  readonly ln_2 = new LayerNorm(width);
  readonly fc = new Linear(width, 4 * width);
  readonly out = new Linear(4 * width, width);

  forward(input: torch.Tensor): torch.Tensor {
    const [batch = 0, length = 0] = input.shape;
    const all = this.attn.forward(this.ln_1.forward(input));
    const packed = torch.reshape(all, [batch, length, 3, heads, width / heads]);
    const attended = torch.packedSelfAttention(packed, { isCausal: true });
    const joined = torch.reshape(attended, [batch, length, width]);
    const middle = input.add(this.proj.forward(joined));
    return middle.add(this.out.forward(this.fc.forward(this.ln_2.forward(middle)).gelu()));
  }
}

/** A GPT as its authors have it (Radford et al. 2019), without dropout: norms before the parts, a tied output layer. */
export class Gpt extends Module {
  readonly wte = new Embedding(vocabulary, width);
  readonly wpe = new Embedding(places, width);
  readonly blocks = new ModuleList(Array.from({ length: layers }, () => new Block()));
  readonly ln_f = new LayerNorm(width);

  /** @param tokens int32 [batch, places]. Returns logits [batch, places, vocabulary]. */
  forward(tokens: torch.Tensor): torch.Tensor {
    const first = this.wte.forward(tokens).add(this.wpe.weight);
    const hidden = this.blocks.items.reduce((value, block) => block.forward(value), first);
    return torch.linear(this.ln_f.forward(hidden), this.wte.weight);
  }
}

import { expect, test } from "vitest";
import {
  attentionWithWeights,
  getDevice,
  grad,
  manualSeed,
  packedSelfAttention,
  randn,
  scaledDotProductAttention,
  sum,
  type Tensor,
  tensor,
} from "../index";
import { canFuse, fusedAttention } from "./fusedAttention";

async function values(of: readonly (Tensor | null)[]): Promise<ArrayLike<number>[]> {
  return Promise.all(of.map((tensor) => tensor!.data()));
}

/** Output and gradients of both ways, from the same numbers. */
async function bothWays(
  shape: { readonly heads: number; readonly keyHeads: number; readonly queries: number; readonly keys: number },
  { isCausal = false, mask = null }: { readonly isCausal?: boolean; readonly mask?: Tensor | null } = {},
) {
  const { heads, keyHeads, queries, keys } = shape;
  const sizes = [
    [2, heads, queries, 8],
    [2, keyHeads, keys, 8],
    [2, keyHeads, keys, 8],
  ];
  manualSeed(1);
  const data = await values(sizes.map((size) => randn(size)));
  const cotangent = randn(sizes[0]!).keep();
  const run = async (of: (query: Tensor, key: Tensor, value: Tensor) => Tensor) => {
    const leaves = data.map((words, i) => tensor(words, { shape: sizes[i]!, requiresGrad: true }));
    const [query, key, value] = leaves as [Tensor, Tensor, Tensor];
    expect(canFuse(query, key, value, mask)).toBe(true);
    const output = of(query, key, value);
    output.backward(cotangent);
    return values([output, ...leaves.map(({ grad }) => grad)]);
  };
  const fused = await run((q, k, v) => fusedAttention(q, k, v, mask, { isCausal, scale: 0.5 }));
  const composed = await run(
    (q, k, v) => attentionWithWeights(q, k, v, { isCausal, attnMask: mask, scale: 0.5, enableGqa: true }).output,
  );
  for (const [part, expected] of composed.entries())
    for (let i = 0; i < expected.length; i++) {
      // Sums of up to 70 products of numbers of size 1.
      const bound = 1e-5 + 1e-4 * Math.abs(expected[i]!);
      expect(Math.abs(fused[part]![i]! - expected[i]!), `part ${part}, element ${i}`).toBeLessThan(bound);
    }
}

test("fused attention and its gradients are those of the composed one", async () => {
  await bothWays({ heads: 3, keyHeads: 3, queries: 5, keys: 7 });
});

test("fused attention is causal", async () => {
  await bothWays({ heads: 2, keyHeads: 2, queries: 70, keys: 70 }, { isCausal: true });
});

test("fused attention takes masks that broadcast, and groups of queries", async () => {
  const mask = tensor([
    [0, -Infinity, 1],
    [0.5, 0, -Infinity],
  ]);
  await bothWays({ heads: 4, keyHeads: 2, queries: 2, keys: 3 }, { mask });
  await bothWays(
    { heads: 2, keyHeads: 2, queries: 3, keys: 2 },
    { mask: tensor(Float32Array.of(0.25, 0, 1, -1), { shape: [2, 1, 1, 2] }) },
  );
});

test("packed self-attention and its gradient are those of the composed one, also where heads have 5 features", async () => {
  for (const features of [8, 5]) {
    const shape = [2, 6, 3, 2, features];
    manualSeed(3);
    const data = await randn(shape).data();
    const cotangent = randn([2, 6, 2, features]).keep();
    const run = async (of: (packed: Tensor) => Tensor) => {
      const packed = tensor(data, { shape, requiresGrad: true });
      const output = of(packed);
      output.backward(cotangent);
      return values([output, packed.grad]);
    };
    const packed = await run((all) => packedSelfAttention(all, { isCausal: true }));
    const composed = await run((all) => {
      const [q, k, v] = [0, 1, 2].map((part) => all.select(2, part).transpose(1, 2));
      return attentionWithWeights(q!, k!, v!, { isCausal: true }).output.transpose(1, 2);
    });
    for (const [part, expected] of composed.entries())
      for (let i = 0; i < expected.length; i++)
        expect(Math.abs(packed[part]![i]! - expected[i]!), `part ${part}, element ${i}`).toBeLessThan(1e-5);
  }
});

test("packed self-attention says what it expects", () => {
  expect(() => packedSelfAttention(randn([2, 6, 2, 2, 8]))).toThrow(
    "packedSelfAttention: the input is float32[2, 6, 2, 2, 8]; expected floats [N, L, 3, H, E]",
  );
});

test("attention takes memory that grows with the length, not with its square", async () => {
  const { stats } = await getDevice();
  const lengths = [1024, 2048];
  const bytes: number[] = [];
  for (const length of lengths) {
    const before = stats.snapshot().bytes;
    const query = randn([1, 1, length, 8]);
    await sum(scaledDotProductAttention(query, query, query, { isCausal: true })).item();
    bytes.push(stats.snapshot().bytes - before);
  }
  // The matrix of weights alone would be 4 and 16 MiB.
  for (const taken of bytes) expect(taken).toBeLessThan(1e6);
});

test("fused attention can be differentiated twice", async () => {
  const second = async (of: (query: Tensor) => Tensor) => {
    manualSeed(2);
    const query = tensor(await randn([1, 1, 3, 4]).data(), { shape: [1, 1, 3, 4], requiresGrad: true });
    const [first] = grad(sum(of(query)), query, { createGraph: true });
    sum(first!.mul(first!)).backward();
    return query.grad!.data();
  };
  const [fused, composed] = await Promise.all([
    second((q) => fusedAttention(q, q, q, null, { isCausal: false, scale: 0.5 })),
    second((q) => attentionWithWeights(q, q, q, { scale: 0.5 }).output),
  ]);
  for (const [i, want] of composed.entries()) expect(Math.abs(fused[i]! - want), `element ${i}`).toBeLessThan(1e-4);
});

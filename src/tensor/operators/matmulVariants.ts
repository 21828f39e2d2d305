import type { VariantExample, VariantSite } from "../variants";
import { type Layout, type MatmulKernel, type Tile, tiledMatmul } from "./matmulShader";
import { workgroupMatmul } from "./matmulWorkgroup";

/** A way to compute a product. All of them accumulate in the same order, so that their results have the same bits. */
export interface MatmulVariant extends Tile {
  readonly name: string;
  readonly kernel: (layout: Layout, tile: Tile) => MatmulKernel;
}

const registers = (rows: number, columns: number, width: number, height: number): MatmulVariant => ({
  ...{ name: `${rows}x${columns} by ${width}x${height}`, kernel: tiledMatmul },
  ...{ rows, columns, width, height },
});

const shared = (rows: number, columns: number, width: number, height: number): MatmulVariant => ({
  ...{ name: `${rows}x${columns} by ${width}x${height}, shared`, kernel: workgroupMatmul },
  ...{ rows, columns, width, height },
});

/**
 * What is taken where nothing was measured, largest first: a large tile reads less memory for each product, a small one
 * makes more workgroups.
 */
export const usualVariants: { readonly [adapter in "software" | "hardware"]: readonly MatmulVariant[] } = {
  software: [registers(16, 8, 4, 4), registers(8, 8, 4, 4), registers(4, 4, 4, 4)],
  hardware: [registers(8, 8, 8, 8), registers(4, 4, 8, 8)],
};

/** All that may be measured: each of the usual ones, and those that share what they read in workgroup memory. */
export const matmulVariants: readonly MatmulVariant[] = [
  ...usualVariants.software,
  ...usualVariants.hardware,
  registers(8, 4, 8, 8),
  shared(4, 4, 16, 16),
  shared(8, 4, 16, 16),
  shared(8, 8, 8, 8),
  shared(8, 8, 16, 16),
];

const names = matmulVariants.map(({ name }) => name);

/** The workgroups that a variant takes for a result of `m` x `n`. */
export const workgroupsOf = ({ rows, columns, width, height }: Tile, m: number, n: number) => ({
  across: Math.ceil(n / (columns * width)),
  down: Math.ceil(m / (rows * height)),
});

/** Sizes up to a power of two count as that. */
const rounded = (size: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, size)));

/** The products that share one choice of a variant: the sizes of the example are of all of them. */
export function matmulSite(example: Omit<VariantExample, "kind">, usual: MatmulVariant): VariantSite {
  const { layout } = example;
  const [m, n, k, batches] = [example.m, example.n, example.k, example.batches].map(rounded);
  const key = `matmul ${layout} ${m}x${n}x${k} in ${batches}`;
  return { key, names, usual: usual.name, example: { kind: "matmul", ...example } };
}

export const matmulVariantNamed = (name: string): MatmulVariant =>
  matmulVariants.find((variant) => variant.name === name)!;

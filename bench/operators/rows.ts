/*
 * The operators that are measured one by one. A row names what is computed and with which sizes; each engine does it in
 * the way that its documentation leads to, and the values are compared.
 */

/** Which way the operands lie: T stands for one that is stored transposed, as [K, M] or [N, K]. */
export type MatmulLayout = "NN" | "NT" | "TN";

export type Operation =
  | {
      readonly kind: "matmul";
      readonly layout: MatmulLayout;
      readonly m: number;
      readonly n: number;
      readonly k: number;
    }
  | { readonly kind: "softmax"; readonly rows: number; readonly columns: number }
  /** With a factor and a shift for each column; `pass` "backward" gives the gradients of all three. */
  | { readonly kind: "layerNorm"; readonly pass: Pass; readonly rows: number; readonly columns: number }
  | { readonly kind: "gelu"; readonly count: number }
  | { readonly kind: "sum"; readonly count: number }
  | Convolution
  /** Causal; "backward" gives the gradients of queries, keys and values, and needs the forward pass. */
  | ({ readonly kind: "attention"; readonly pass: Pass } & AttentionSizes);

export type Pass = "forward" | "backward";

/** Kernel 3x3, padding 1, stride 1. */
export interface Convolution {
  readonly kind: "convolution";
  readonly pass: "forward" | "inputGradient" | "weightGradient";
  readonly images: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly size: number;
}

export interface AttentionSizes {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
}

export const operatorGroups = ["matmul", "rows", "convolution", "attention"] as const;
export type OperatorGroup = (typeof operatorGroups)[number];

export interface OperatorRow {
  readonly name: string;
  readonly group: OperatorGroup;
  readonly operation: Operation;
}

const matmul = (layout: MatmulLayout, m: number, n = m, k = m): OperatorRow => ({
  name: `matmul ${layout} ${m === n && n === k ? m : `${m}x${k}x${n}`}`,
  group: "matmul",
  operation: { kind: "matmul", layout, m, n, k },
});

const layouts = ["NN", "NT", "TN"] as const;
const million = 2 ** 20;
const conv = { kind: "convolution", images: 64, inputs: 16, outputs: 32, size: 14 } as const;
const attention = { kind: "attention", batch: 4, heads: 4, length: 256, width: 32 } as const;

export const operatorRows: readonly OperatorRow[] = [
  ...[256, 512, 1024].flatMap((size) => layouts.map((layout) => matmul(layout, size))),
  ...layouts.map((layout) => matmul(layout, 255, 253, 257)),
  // The GPT's feed-forward product, and the gradient of a weight: thin and deep.
  matmul("NT", 512, 512, 128),
  matmul("TN", 128, 512, 512),
  { name: "softmax [1024, 1024]", group: "rows", operation: { kind: "softmax", rows: 1024, columns: 1024 } },
  {
    name: "layer norm [1024, 1024]",
    group: "rows",
    operation: { kind: "layerNorm", pass: "forward", rows: 1024, columns: 1024 },
  },
  {
    name: "layer norm [1024, 1024], gradients",
    group: "rows",
    operation: { kind: "layerNorm", pass: "backward", rows: 1024, columns: 1024 },
  },
  { name: "GELU of 4 Mi", group: "rows", operation: { kind: "gelu", count: 4 * million } },
  { name: "sum of 4 Mi", group: "rows", operation: { kind: "sum", count: 4 * million } },
  { name: "conv 3x3 16-32, 14x14, 64 images", group: "convolution", operation: { ...conv, pass: "forward" } },
  { name: "its input's gradient", group: "convolution", operation: { ...conv, pass: "inputGradient" } },
  { name: "its weight's gradient", group: "convolution", operation: { ...conv, pass: "weightGradient" } },
  { name: "causal attention [4, 4, 256, 32]", group: "attention", operation: { ...attention, pass: "forward" } },
  { name: "its gradients, forward included", group: "attention", operation: { ...attention, pass: "backward" } },
];

/** The shapes of an operation's inputs, in the order in which every engine takes them. */
export function inputShapes(operation: Operation): readonly (readonly number[])[] {
  switch (operation.kind) {
    case "matmul": {
      const { layout, m, n, k } = operation;
      return [layout[0] === "T" ? [k, m] : [m, k], layout[1] === "T" ? [n, k] : [k, n]];
    }
    case "softmax":
      return [[operation.rows, operation.columns]];
    case "layerNorm": {
      const { rows, columns, pass } = operation;
      return [[rows, columns], [columns], [columns], ...(pass === "backward" ? [[rows, columns]] : [])];
    }
    case "gelu":
    case "sum":
      return [[operation.count]];
    case "convolution": {
      const { images, inputs, outputs, size, pass } = operation;
      const [x, weight, y] = [
        [images, inputs, size, size],
        [outputs, inputs, 3, 3],
        [images, outputs, size, size],
      ];
      return pass === "forward" ? [x, weight] : [x, weight, y];
    }
    case "attention": {
      const { batch, heads, length, width, pass } = operation;
      const shape = [batch, heads, length, width];
      return pass === "forward" ? [shape, shape, shape] : [shape, shape, shape, shape];
    }
  }
}

export const sizeOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** What an operation can't do without. `operations` counts a multiply-add as two; null where bytes are what counts. */
export interface Work {
  readonly operations: number | null;
  /** Inputs read once and results written once. */
  readonly bytes: number;
}

export function workOf(operation: Operation): Work {
  const read = 4 * inputShapes(operation).reduce((total, shape) => total + sizeOf(shape), 0);
  switch (operation.kind) {
    case "matmul": {
      const { m, n, k } = operation;
      return { operations: 2 * m * n * k, bytes: read + 4 * m * n };
    }
    case "softmax":
      return { operations: null, bytes: read + 4 * operation.rows * operation.columns };
    case "layerNorm":
      return { operations: null, bytes: read + 4 * operation.rows * operation.columns };
    case "gelu":
      return { operations: null, bytes: read + 4 * operation.count };
    case "sum":
      return { operations: null, bytes: read };
    case "convolution": {
      const { images, inputs, outputs, size } = operation;
      return { operations: 2 * images * outputs * size * size * inputs * 9, bytes: read };
    }
    case "attention": {
      const { batch, heads, length, width, pass } = operation;
      // Two products forward, and five backward with the scores made again; half of each is masked.
      return { operations: (pass === "forward" ? 2 : 7) * batch * heads * length * length * width, bytes: read };
    }
  }
}

import { spread } from "../../gpu";
import { apply } from "../apply";
import { autocasting, isAutocastEnabled, withRegion } from "../autocast";
import { isFloating, isNarrow } from "../dtype";
import { broadcastShapes, describeShape, OperatorError, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { copyInto } from "./copy";
import { add, mul, to } from "./elementwise";
import { type Layout, type MatmulKernel, stridedMatmul, type Tile } from "./matmulShader";
import { matmulSite, matmulVariantNamed, usualVariants, workgroupsOf } from "./matmulVariants";
import { sum, sumParts } from "./reduction";
import { type BufferValue, innerOffset, type Lowering, type Operator, type Producer } from "./table";
import { reshape, sumTo, transpose } from "./views";

/** An operand as the kernels walk it: elements to step for a row, a column, and a matrix of the batch. */
interface Matrix {
  readonly value: BufferValue;
  readonly rows: number;
  readonly columns: number;
  readonly row: number;
  readonly column: number;
  readonly batch: number;
}

type MatmulAttributes = { readonly transposeB: boolean };

/** [..., M, K] @ [..., K, N] with broadcast batch dimensions; with `transposeB` the second is [..., N, K]. */
const matmulRow: Operator<MatmulAttributes> = {
  name: "matmul",
  infer([a, b], { transposeB }) {
    const batch = broadcastShapes(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
    const [columns, inner] = transposeB ? b!.shape.slice(-2) : b!.shape.slice(-2).reverse();
    if (a!.shape.at(-1) !== inner || !batch)
      throw new OperatorError(
        "matmul",
        `got shapes ${describeShape(a!.shape)} and ${describeShape(b!.shape)}; ` +
          `expected ${batch ? `the first's last size to equal the second's last${transposeB ? "" : " but one"}` : "batch dimensions that broadcast"}`,
      );
    return { shape: [...batch, a!.shape.at(-2)!, columns!], dtype: "float32" };
  },
  lower(lowering, { inputs: [a, b], shape, attributes: { transposeB } }) {
    const batch = shape.slice(0, -2);
    const [left, right] = [a!, b!].map((value) => matrixOf(lowering, lowering.buffer(value), batch));
    return emitMatmul(lowering, left!, transposeB ? transposed(right!) : right!, shape);
  },
  backward: ({ inputs: [a, b], gradient, needs, attributes: { transposeB } }) => [
    needs[0] ? sumTo(product(gradient, b!, !transposeB), a!.shape) : null,
    needs[1]
      ? sumTo(
          transposeB
            ? product(transpose(gradient, -1, -2), a!, false)
            : product(transpose(a!, -1, -2), gradient, false),
          b!.shape,
        )
      : null,
  ],
};

const product = (a: Tensor, b: Tensor, transposeB: boolean): Tensor => apply(matmulRow, [a, b], { transposeB });

export const matrix: readonly Operator[] = [matmulRow];

function matrixOf(lowering: Lowering, value: BufferValue, batch: readonly number[]): Matrix {
  const lead = batch.length - (value.shape.length - 2);
  const strides = batch.map((_, d) => (d < lead || value.shape[d - lead] === 1 ? 0 : value.strides[d - lead]!));
  const step = evenStep(batch, strides);
  const [rows, columns] = value.shape.slice(-2) as [number, number];
  const [row, column] = value.strides.slice(-2) as [number, number];
  if (step !== null) return { value, rows, columns, row, column, batch: step };
  const shape = [...batch, ...value.shape.slice(-2)];
  const whole = lowering.dense({ ...value, shape, strides: [...strides, ...value.strides.slice(-2)] });
  return matrixOf(lowering, whole, batch);
}

const transposed = (of: Matrix): Matrix => ({
  ...of,
  ...{ rows: of.columns, columns: of.rows, row: of.column, column: of.row },
});

/** The step from one matrix to the next, or null where they don't lie evenly. */
function evenStep(batch: readonly number[], strides: readonly number[]): number | null {
  let size = 1;
  let step: number | null = null;
  for (let d = batch.length - 1; d >= 0; d--) {
    if (batch[d] === 1) continue;
    if (step === null) step = strides[d]!;
    else if (strides[d] !== step * size) return null;
    size *= batch[d]!;
  }
  return step ?? 0;
}

/** Workgroups that keep all of an adapter busy. */
const enoughWorkgroups = { software: 4, hardware: 128 } as const;
/** A sum is cut into parts of at least so many products. */
const leastDepth = 256;
/** And of at most so many: each addition to a long sum rounds it. */
const largestDepth = 16_384;
/** Smaller products than this, in operations or along a dimension, don't pay for laying their operands out anew. */
const packedWork = 2 ** 20;
const packedSize = 16;

function emitMatmul(lowering: Lowering, left: Matrix, right: Matrix, shape: Shape): BufferValue {
  const { isSoftware } = lowering;
  const [m, n] = shape.slice(-2) as [number, number];
  const depth = left.columns;
  const batches = sizeOf(shape.slice(0, -2));
  const work = 2 * batches * m * n * depth + batches * m * n;
  // Operands that lie otherwise are laid out anew where that pays.
  const paysToPack = work >= packedWork && Math.min(m, n) >= packedSize && depth > 0;
  const { a, b } =
    paysToPack && !layoutOf(left, right) ? aligning(lowering, left, right, batches) : { a: left, b: right };
  const layout = layoutOf(a, b);
  if (!layout) {
    const [across, down] = [Math.ceil(n / 4), Math.ceil(m / 4)];
    const sizes = [m, n, depth, batches, across, down, a.batch, b.batch, innerOffset(a.value), innerOffset(b.value)];
    return lowering.produce({
      ...producerOf(stridedMatmul, a, b, n),
      uniforms: [...sizes, a.row, a.column, b.row, b.column],
      grid: spread(Math.ceil((across * down * batches) / 64)),
      work,
    });
  }
  const adapter = isSoftware ? "software" : "hardware";
  const usual = usualVariants[adapter];
  const enough = enoughWorkgroups[adapter];
  const busy = (tile: Tile) => {
    const { across, down } = workgroupsOf(tile, m, n);
    return across * down * batches;
  };
  const first = usual.find((one) => busy(one) >= enough) ?? usual.at(-1)!;
  // What changes the order of a sum doesn't depend on what was measured.
  const forWorkgroups = Math.min(Math.ceil(enough / busy(first)), Math.floor(depth / leastDepth));
  const wanted = batches === 1 ? Math.max(forWorkgroups, Math.ceil(depth / largestDepth)) : 1;
  const length = wanted > 1 ? Math.ceil(depth / wanted / 4) * 4 : depth;
  const parts = wanted > 1 ? Math.ceil(depth / length) : 1;
  const tile = matmulVariantNamed(lowering.variant(matmulSite({ layout, m, n, k: depth, batches }, first)));
  const { across, down } = workgroupsOf(tile, m, n);
  const steps = parts > 1 ? [length * a.column, length * b.row] : [a.batch, b.batch];
  const producer: Producer = {
    ...producerOf(tile.kernel(layout, tile), a, b, n),
    uniforms: [
      ...[m, n, length, batches * parts, across, down],
      ...[...steps, innerOffset(a.value), innerOffset(b.value)],
      ...[pitchOf(a), pitchOf(b), depth, parts],
    ],
    grid: spread(across * down * batches * parts),
    work,
  };
  if (parts === 1) return lowering.produce(producer);
  const partial = lowering.allocate([parts, m, n], "float32");
  lowering.produceInto(producer, partial);
  return sumParts(lowering, partial);
}

/** Copies of the operands that don't lie so that a kernel can walk them by vectors. */
function aligning(lowering: Lowering, left: Matrix, right: Matrix, batches: number) {
  const isWhole = left.columns % 4 === 0;
  const isWalkable = (matrix: Matrix, alongDepth: "N" | "T") => {
    const order = orderOf(matrix);
    return order !== null && (order !== alongDepth || isWhole);
  };
  const a = isWalkable(left, "N") ? left : packed(lowering, left, batches, "columns");
  const fits = isWalkable(right, "T") && layoutOf(a, right) !== null;
  return { a, b: fits ? right : packed(lowering, right, batches, "rows") };
}

const producerOf = ({ name, fields, code, quadCode, type }: MatmulKernel, a: Matrix, b: Matrix, columns: number) => ({
  ...{ name, fields, code, quadCode: columns % 4 === 0 ? quadCode : null },
  inputs: [
    { name: "a", type, value: a.value },
    { name: "b", type, value: b.value },
  ],
});

const aligned = (size: number): number => Math.ceil(size / 4) * 4;

/** A copy that has its rows or its columns contiguous, and whole vectors of 4 apart. */
function packed(lowering: Lowering, matrix: Matrix, batches: number, contiguous: "rows" | "columns"): Matrix {
  const { value, rows, columns, row, column, batch } = matrix;
  const copies = batch === 0 ? 1 : batches;
  const [outer, inner] = contiguous === "rows" ? [rows, columns] : [columns, rows];
  const strides = contiguous === "rows" ? [batch, row, column] : [batch, column, row];
  const pitch = aligned(inner);
  const copy = lowering.allocate([copies, outer, pitch], "float32");
  const shape = [copies, outer, inner];
  copyInto(lowering, { ...value, shape, strides }, { ...copy, shape });
  const step = batch === 0 ? 0 : outer * pitch;
  const steps = contiguous === "rows" ? { row: pitch, column: 1 } : { row: 1, column: pitch };
  return { value: copy, rows, columns, batch: step, ...steps };
}

/** The kernel that can walk the operands by vectors of 4, if one can. */
function layoutOf(a: Matrix, b: Matrix): Layout | null {
  const [first, second] = [orderOf(a), orderOf(b)];
  if (!first || !second || (first === "T" && second === "T")) return null;
  // Vectors along K must end where K does.
  if ((first === "N" || second === "T") && a.columns % 4 !== 0) return null;
  return `${first}${second}` as Layout;
}

/** "N": rows are contiguous; "T": columns are. Both with a pitch of whole vectors. */
function orderOf({ value, row, column, batch }: Matrix): "N" | "T" | null {
  if (innerOffset(value) % 4 !== 0 || batch % 4 !== 0) return null;
  if (column === 1 && row % 4 === 0) return "N";
  return row === 1 && column % 4 === 0 ? "T" : null;
}

const pitchOf = ({ row, column }: Matrix): number => (column === 1 ? row : column);

export interface MatmulOptions {
  /** The result's type, where the operands are float16 or bfloat16: theirs, or the float32 that sums are kept in. */
  readonly outDtype?: "float32";
}

/**
 * PyTorch's matmul: vectors are rows on the left and columns on the right, and lose that dimension in the result; batch
 * dimensions broadcast. Sums are kept in float32, and rounded once to narrower operands' type.
 * @throws OperatorError for shapes that don't go together, and operands of different types.
 */
export function matmul(a: Tensor, b: Tensor, { outDtype }: MatmulOptions = {}): Tensor {
  if (outDtype && isNarrow(a.dtype) && a.dtype === b.dtype)
    return withRegion(null, () => matmul(to(a, outDtype), to(b, outDtype)));
  for (const [name, tensor] of [
    ["first", a],
    ["second", b],
  ] as const)
    if (tensor.ndim === 0 || !isFloating(tensor.dtype))
      throw new OperatorError(
        "matmul",
        `the ${name} operand is ${tensor}; expected a floating-point type and at least 1 dimension`,
      );
  if (a.dtype !== b.dtype && !isAutocastEnabled())
    throw new OperatorError("matmul", `the operands are ${a} and ${b}; expected one type. Use to(), or autocast`);
  // A sum by pairs rounds a long one less than adding its terms in turn does.
  if (a.ndim === 1 && b.ndim === 1 && a.dtype === "float32" && a.numel === b.numel && a.numel > largestDepth)
    return sum(mul(a, b));
  if (a.ndim === 1) {
    const row = matmul(reshape(a, [1, a.numel]), b);
    return reshape(row, b.ndim === 1 ? [] : row.shape.toSpliced(-2, 1));
  }
  if (b.ndim === 1) return reshape(matmul(a, reshape(b, [b.numel, 1])), a.shape.slice(0, -1));
  return a.ndim > 2 && b.ndim === 2 ? tallProduct(a, b, false) : product(a, b, false);
}

/** [..., K] by one matrix: one tall product instead of a batch of small ones. */
function tallProduct(a: Tensor, b: Tensor, transposeB: boolean): Tensor {
  const batch = a.shape.slice(0, -1);
  const rows = reshape(a, [sizeOf(batch), a.shape.at(-1)!]);
  return reshape(product(rows, b, transposeB), [...batch, b.shape[transposeB ? 0 : 1]!]);
}

const ofRank =
  (name: string, rankA: number, rankB: number) =>
  (a: Tensor, b: Tensor, options: MatmulOptions = {}) => {
    if (a.ndim !== rankA || b.ndim !== rankB || (rankA === 3 && a.shape[0] !== b.shape[0]))
      throw new OperatorError(
        name,
        `got shapes ${describeShape(a.shape)} and ${describeShape(b.shape)}; expected ${rankA} and ${rankB} dimensions` +
          (rankA === 3 ? " and equal batches" : ""),
      );
    return matmul(a, b, options);
  };

/** [M, K] @ [K, N]. */
export const mm = ofRank("mm", 2, 2);
/** [B, M, K] @ [B, K, N]. */
export const bmm = ofRank("bmm", 3, 3);
/** [M, K] @ [K]. */
export const mv = ofRank("mv", 2, 1);
/** The inner product of two vectors. */
export const dot = ofRank("dot", 1, 1);

/**
 * input @ weight^T + bias.
 * @param input [..., in]
 * @param weight [out, in], or [in] for one output without a dimension
 * @param bias [out]
 */
export const linear = autocasting("linear", (input: Tensor, weight: Tensor, bias: Tensor | null = null): Tensor => {
  if (input.shape.at(-1) !== weight.shape.at(-1) || weight.ndim > 2)
    throw new OperatorError(
      "linear",
      `the input has shape ${describeShape(input.shape)} and the weight ${describeShape(weight.shape)}; ` +
        "expected [..., in] and [out, in]",
    );
  if (input.dtype !== weight.dtype)
    throw new OperatorError(
      "linear",
      `the input is ${input} and the weight ${weight}; expected one type. Use to(), or autocast`,
    );
  const result = weight.ndim === 2 ? tallProduct(input, weight, true) : matmul(input, weight);
  return bias ? add(result, bias) : result;
});

import { storageOf } from "./apply";
import { backward } from "./autograd";
import { type DType, encode, isFloating, type TypedArray } from "./dtype";
import * as f from "./functions";
import type { Attributes } from "./graph";
import type { Operand } from "./operators/elementwise";
import { persistentStorage } from "./operators/inPlace";
import type { Operator } from "./operators/table";
import type { Recording } from "./recording";
import { isRecorded, read, settleReads, writeStorage } from "./runtime";
import { describeShape, OperatorError, type Shape, sizeOf } from "./shape";
import { newStorage, type Storage } from "./storage";
import { noteUse, refuseInTrace } from "./trace";

/**
 * Where a tensor's value is. A `node` is in a recording, and gone once that is flushed, unless it has a storage or is of
 * one element, which the device's ring keeps for long.
 * A `recipe` is a creation without inputs: it is recorded again wherever it is used, so it always survives.
 */
export type Source =
  | { readonly kind: "storage"; readonly storage: Storage }
  | { readonly kind: "node"; readonly recording: Recording; readonly index: number; storage: Storage | null }
  | {
      readonly kind: "recipe";
      readonly operator: Operator;
      readonly attributes: Attributes;
      readonly scalars: readonly number[];
      at: { readonly recording: Recording; readonly index: number } | null;
    };

/** How a tensor was made, for the backward pass. `versions` are those of the inputs' memories at that time. */
export interface GradientFunction {
  readonly operator: Operator;
  readonly inputs: readonly Tensor[];
  readonly attributes: Attributes;
  readonly scalars: readonly number[];
  readonly versions: readonly number[];
  /** In a checkpointed function: records it again, and gives what the call made then, whose operands a rule is to use. */
  readonly again?: (() => Tensor) | null;
}

type Dims = number | readonly number[] | null;

let created = 0;

/** How many tensors were made so far: the `order` of the next. */
export const tensorsMade = (): number => created;

/**
 * An n-dimensional array, PyTorch's in camelCase. Operations are recorded and run together when a value is asked for
 * (`item`, `array`, `data`) or at `flush()`. A flush keeps tensors made from data, parameters, gradients, what was
 * asked for, what `keep()` marks, and results of one element (losses, say) until thousands of later ones; everything
 * else is gone after it.
 */
export class Tensor {
  grad: Tensor | null = null;
  /** Later tensors have higher numbers: a backward pass goes down. */
  readonly order = created++;

  constructor(
    readonly shape: Shape,
    public dtype: DType,
    public source: Source,
    public requiresGrad: boolean,
    public gradFn: GradientFunction | null,
  ) {}

  get isLeaf(): boolean {
    return this.gradFn === null;
  }

  /** The number of dimensions. */
  get ndim(): number {
    return this.shape.length;
  }

  /** The number of elements. */
  get numel(): number {
    return sizeOf(this.shape);
  }

  /** The size of a dimension; negative ones count from the end. */
  size(dim: number): number {
    const size = this.shape.at(dim);
    if (size === undefined)
      throw new OperatorError("size", `dim is ${dim}; expected a dimension of ${describeShape(this.shape)}`);
    return size;
  }

  toString(): string {
    return `${this.dtype}${describeShape(this.shape)}`;
  }

  // Values

  /** The values in row-major order: Float32Array for floats, Int32Array, or Uint8Array for bool. Flushes. */
  data(): Promise<TypedArray> {
    return read(this);
  }

  /** The only element. Flushes. */
  async item(): Promise<number> {
    if (this.numel !== 1)
      throw new OperatorError("item", `the tensor has shape ${describeShape(this.shape)}; expected one element`);
    return (await read(this))[0]!;
  }

  /** The values as nested arrays; a number for a scalar. Flushes. */
  async array(): Promise<NestedNumbers> {
    return nest(await read(this), this.shape);
  }

  /** Lets the value survive flushes, for as long as the tensor is referred to. Returns the tensor. */
  keep(): this {
    if (this.source.kind === "recipe") persistentStorage("keep", this);
    else storageOf(this);
    return this;
  }

  /**
   * Overwrites the values of a tensor made from data, after everything recorded so far. Makes no new buffer.
   * @param values in row-major order, one for each element.
   */
  write(values: ArrayLike<number | boolean>): void {
    refuseInTrace("writes values from the host", "Pass them as an argument");
    settleReads();
    const { dtype, numel } = this;
    const storage = persistentStorage("write", this);
    if (values.length !== numel)
      throw new OperatorError(
        "write",
        `got ${values.length} values; expected ${numel}, for shape ${describeShape(this.shape)}`,
      );
    if (isRecorded(storage)) {
      f.copy_(this, tensor(values, { shape: this.shape, dtype }));
      return;
    }
    storage.memory.version += 1;
    writeStorage(storage, wordsOf(values, dtype));
  }

  // Gradients

  /**
   * Adds this tensor's gradients into the `grad` of each leaf that requires one.
   * @param gradient of this tensor, in its shape; 1 when it has one element.
   */
  backward(gradient?: Tensor): void {
    backward(this, gradient);
  }

  /** The same value, cut off from how it was made. */
  detach(): Tensor {
    noteUse(this);
    return new Tensor(this.shape, this.dtype, this.source, false, null);
  }

  // Operations

  to(dtype: DType): Tensor {
    return f.to(this, dtype);
  }
  /** As float32. */
  float(): Tensor {
    return f.to(this, "float32");
  }
  /** As float16. */
  half(): Tensor {
    return f.to(this, "float16");
  }
  /** As bfloat16. */
  bfloat16(): Tensor {
    return f.to(this, "bfloat16");
  }
  add(other: Operand, alpha = 1): Tensor {
    return f.add(this, other, alpha);
  }
  sub(other: Operand, alpha = 1): Tensor {
    return f.sub(this, other, alpha);
  }
  mul(other: Operand): Tensor {
    return f.mul(this, other);
  }
  div(other: Operand, roundingMode: "trunc" | "floor" | null = null): Tensor {
    return f.div(this, other, roundingMode);
  }
  pow(exponent: Operand): Tensor {
    return f.pow(this, exponent);
  }
  maximum(other: Operand): Tensor {
    return f.maximum(this, other);
  }
  minimum(other: Operand): Tensor {
    return f.minimum(this, other);
  }
  eq(other: Operand): Tensor {
    return f.eq(this, other);
  }
  ne(other: Operand): Tensor {
    return f.ne(this, other);
  }
  lt(other: Operand): Tensor {
    return f.lt(this, other);
  }
  le(other: Operand): Tensor {
    return f.le(this, other);
  }
  gt(other: Operand): Tensor {
    return f.gt(this, other);
  }
  ge(other: Operand): Tensor {
    return f.ge(this, other);
  }
  neg(): Tensor {
    return f.neg(this);
  }
  abs(): Tensor {
    return f.abs(this);
  }
  exp(): Tensor {
    return f.exp(this);
  }
  log(): Tensor {
    return f.log(this);
  }
  sqrt(): Tensor {
    return f.sqrt(this);
  }
  tanh(): Tensor {
    return f.tanh(this);
  }
  sigmoid(): Tensor {
    return f.sigmoid(this);
  }
  relu(): Tensor {
    return f.relu(this);
  }
  gelu(approximate: "none" | "tanh" = "none"): Tensor {
    return f.gelu(this, approximate);
  }
  clamp(min: Operand | null = null, max: Operand | null = null): Tensor {
    return f.clamp(this, min, max);
  }
  matmul(other: Tensor): Tensor {
    return f.matmul(this, other);
  }
  sum(dim: Dims = null, keepdim = false): Tensor {
    return f.sum(this, dim, keepdim);
  }
  mean(dim: Dims = null, keepdim = false): Tensor {
    return f.mean(this, dim, keepdim);
  }
  var(dim: Dims = null, options: f.VarianceOptions = {}): Tensor {
    return f.var_(this, dim, options);
  }
  amax(dim: Dims = null, keepdim = false): Tensor {
    return f.amax(this, dim, keepdim);
  }
  amin(dim: Dims = null, keepdim = false): Tensor {
    return f.amin(this, dim, keepdim);
  }
  argmax(dim: number | null = null, keepdim = false): Tensor {
    return f.argmax(this, dim, keepdim);
  }
  argmin(dim: number | null = null, keepdim = false): Tensor {
    return f.argmin(this, dim, keepdim);
  }
  logsumexp(dim: Dims, keepdim = false): Tensor {
    return f.logsumexp(this, dim, keepdim);
  }
  softmax(dim: number): Tensor {
    return f.softmax(this, dim);
  }
  logSoftmax(dim: number): Tensor {
    return f.logSoftmax(this, dim);
  }
  reshape(...shape: [Shape] | number[]): Tensor {
    return f.reshape(this, sizes(shape));
  }
  view(...shape: [Shape] | number[]): Tensor {
    return f.reshape(this, sizes(shape));
  }
  flatten(startDim = 0, endDim = -1): Tensor {
    return f.flatten(this, startDim, endDim);
  }
  permute(...dims: [Shape] | number[]): Tensor {
    return f.permute(this, sizes(dims));
  }
  transpose(dim0: number, dim1: number): Tensor {
    return f.transpose(this, dim0, dim1);
  }
  t(): Tensor {
    return f.t(this);
  }
  unsqueeze(dim: number): Tensor {
    return f.unsqueeze(this, dim);
  }
  squeeze(dim?: number): Tensor {
    return f.squeeze(this, dim);
  }
  expand(...shape: [Shape] | number[]): Tensor {
    return f.expand(this, sizes(shape));
  }
  narrow(dim: number, start: number, length: number): Tensor {
    return f.narrow(this, dim, start, length);
  }
  select(dim: number, index: number): Tensor {
    return f.select(this, dim, index);
  }
  contiguous(): Tensor {
    return f.contiguous(this);
  }
}

function sizes(list: readonly (number | Shape)[]): number[] {
  return list.flat();
}

export type NestedArray = ArrayLike<number | boolean> | readonly NestedArray[];
export type NestedNumbers = number | NestedNumbers[];

export interface TensorOptions {
  /** Default: what the nesting of `data` says. */
  readonly shape?: Shape;
  /** Default: float32; int32 for an Int32Array, bool for booleans. */
  readonly dtype?: DType;
  readonly requiresGrad?: boolean;
}

/** A tensor made from data: a number, a typed array, or nested arrays in row-major order. It survives flushes. */
export function tensor(
  data: number | boolean | NestedArray,
  { shape, dtype, requiresGrad = false }: TensorOptions = {},
): Tensor {
  const { values, nested } = flattened(data);
  const ofShape = shape ? [...shape] : nested;
  const type = dtype ?? (values instanceof Int32Array ? "int32" : typeof values[0] === "boolean" ? "bool" : "float32");
  if (sizeOf(ofShape) !== values.length)
    throw new OperatorError(
      "tensor",
      `got ${values.length} values; expected ${sizeOf(ofShape)}, for shape ${describeShape(ofShape)}`,
    );
  if (requiresGrad && !isFloating(type))
    throw new OperatorError(
      "tensor",
      `dtype is ${type}; expected a floating-point type for a tensor that requires a gradient`,
    );
  const storage = newStorage(values.length, `a tensor of shape ${describeShape(ofShape)}`, type);
  const words = encode(values, type);
  if (words.length > 0) storage.memory.write(words);
  return new Tensor(ofShape, type, { kind: "storage", storage }, requiresGrad, null);
}

function flattened(data: number | boolean | NestedArray): { values: ArrayLike<number | boolean>; nested: number[] } {
  if (typeof data === "number" || typeof data === "boolean") return { values: [data], nested: [] };
  if (!Array.isArray(data)) return { values: data as ArrayLike<number | boolean>, nested: [data.length] };
  const values: (number | boolean)[] = [];
  const nested: number[] = [];
  collect(data, 0, values, nested);
  return { values, nested };
}

function collect(data: unknown, depth: number, values: (number | boolean)[], nested: number[]): void {
  if (typeof data === "number" || typeof data === "boolean") {
    if (depth !== nested.length)
      throw new OperatorError("tensor", "the nested arrays are uneven; expected rows of equal lengths");
    values.push(data);
    return;
  }
  if (
    !Array.isArray(data) ||
    (depth < nested.length && nested[depth] !== data.length) ||
    (depth >= nested.length && values.length > 0)
  )
    throw new OperatorError("tensor", "the nested arrays are uneven; expected numbers in rows of equal lengths");
  if (depth >= nested.length) nested.push(data.length);
  for (const entry of data) collect(entry, depth + 1, values, nested);
}

/** Typed arrays of the right type pass as they are, without a copy. */
function wordsOf(values: ArrayLike<number | boolean>, dtype: DType) {
  if (dtype === "float32" && values instanceof Float32Array && values.buffer instanceof ArrayBuffer)
    return values as Float32Array<ArrayBuffer>;
  if (dtype === "int32" && values instanceof Int32Array && values.buffer instanceof ArrayBuffer)
    return values as Int32Array<ArrayBuffer>;
  return encode(values, dtype);
}

function nest(values: ArrayLike<number>, shape: Shape): NestedNumbers {
  const build = (dim: number, at: number, stride: number): NestedNumbers => {
    if (dim === shape.length) return values[at]!;
    const inner = shape[dim] === 0 ? 0 : stride / shape[dim]!;
    return Array.from({ length: shape[dim]! }, (_, i) => build(dim + 1, at + i * inner, inner));
  };
  return build(0, 0, values.length);
}

import type { Grid, Shader } from "../../gpu";
import { bytesOf, type ComputeType, type DType } from "../dtype";
import type { Attributes } from "../graph";
import type { Shape } from "../shape";
import type { Tensor } from "../tensor";
import type { VariantSite } from "../variants";
import type { ElementFunction } from "./elementwiseKernel";

/**
 * The operator table: one row an operator.
 *
 * To add one, write in the file of its family (each exports an array of rows, which `registry.ts` joins):
 *
 * 1. the row: `name` (PyTorch's, in camelCase); `infer`, which checks the call and gives shape and dtype, throwing
 *    `new OperatorError(name, "argument is X; expected Y")`; `lower`, which turns one recorded node into kernel calls;
 *    and `backward`, which gives the gradient of each input, written with the public operators, so that it can itself
 *    be differentiated;
 * 2. the public function, beside the row: `apply(row, [tensors], attributes, scalars)`. It does what PyTorch's does
 *    before the kernel: defaults, promotion, normalising dims. What can be said with other operators needs no row, only
 *    a function.
 *
 * Attributes are structure: each new value makes a new plan. Scalars are uniforms: they may change with each replay.
 *
 * Lowering an elementwise operator is `lowering.elementwise`, which lets it join its neighbours in one kernel; a kernel
 * that ends in one store an element is best a `lowering.produce`. For others: `lowering.result()` is the node's result, contiguous, to be written by the kernel and returned.
 * `lowering.dense(value)` gives an operand row-major and bindable by itself, copying only when a view requires it.
 * `lowering.allocate` gives scratch memory that lives until the node is done. `lowering.dispatch` adds a kernel: its
 * shader's binding 0 is a uniform block (the words of `uniforms`, in order), then the buffers of `bindings` in order.
 * A kernel that reads a value by its strides adds `innerOffset(value)` to its index. A kernel's workgroups come as
 * `spread(n)`: index = id.x + (id.y + id.z * n.y) * n.x * workgroupSize, and the kernel checks its end. A kernel reads
 * and writes no buffer twice; the planner copies an operand that lies in a written buffer.
 */
export interface Operator<A extends Attributes = Attributes> {
  readonly name: string;
  /** True when running it changes a persistent tensor (its first input), so that it runs even if unused. */
  readonly effect?: boolean;
  /** True when the result's elements are the input's, in a view. */
  readonly isView?: boolean;
  /**
   * True when its inputs and result may be narrow floats. Other operators compute float32 from narrow inputs, and their
   * result is cast back. Its kernels compute in float32 all the same: `lower` sees narrow values as float32 ones, and
   * `result()` is a float32 one that is rounded into the node's memory behind it.
   */
  readonly takesNarrow?: boolean;
  infer(inputs: readonly TensorType[], attributes: A): TensorType;
  lower(lowering: Lowering, node: LoweredNode<A>): Value;
  /** The gradient of each input; null for those that have none or whose `needs` is false. Absent: no gradient flows. */
  backward?(context: BackwardContext<A>): readonly (Tensor | null)[];
}

/** A tensor's type: what is known without its value. */
export interface TensorType {
  readonly shape: Shape;
  readonly dtype: DType;
}

export interface BackwardContext<A extends Attributes = Attributes> {
  readonly inputs: readonly Tensor[];
  readonly output: Tensor;
  /** The gradient of the output, in its shape. */
  readonly gradient: Tensor;
  readonly attributes: A;
  readonly scalars: readonly number[];
  /** By input: whether its gradient is wanted. */
  readonly needs: readonly boolean[];
}

export interface LoweredNode<A extends Attributes = Attributes> extends TensorType {
  readonly dtype: ComputeType;
  readonly inputs: readonly Value[];
  readonly attributes: A;
  /** The node's scalars, to be passed as uniforms. */
  readonly scalars: readonly ScalarReference[];
}

/** A scalar of a node, whose value each replay supplies, or a number known to the plan. */
export type ScalarReference = { readonly node: number; readonly index: number } | { readonly literal: number };

/** A word of a uniform block: a plain number is a u32. */
export type Uniform =
  | number
  | { readonly f32: number }
  | { readonly i32: number }
  | { readonly scalar: ScalarReference; readonly dtype: ComputeType };

/** A node's value while lowering: elements of a buffer, or one number that fills the shape. */
export type Value = BufferValue | ConstantValue;

export interface BufferValue extends TensorType {
  readonly kind: "buffer";
  /** What kernels read: the root may store a narrower type. */
  readonly dtype: ComputeType;
  readonly root: Root;
  /** Elements to step over for each dimension; 0 where broadcast. */
  readonly strides: readonly number[];
  /** The first element's index in the root. */
  readonly offset: number;
}

export interface ConstantValue extends TensorType {
  readonly kind: "constant";
  readonly dtype: ComputeType;
  readonly scalar: ScalarReference;
}

/** The buffer behind values that alias each other. Belongs to the planner. */
export interface Root {
  /** The type that is stored. */
  readonly dtype: DType;
  readonly bytes: number;
  /** Whether other tensors lie in the same memory, so that its padding must stay as it is. */
  readonly isShared: boolean;
}

export interface KernelCall {
  readonly shader: Shader;
  /** In the order of the shader's bindings. */
  readonly bindings: readonly BufferValue[];
  readonly uniforms: readonly Uniform[];
  readonly grid: Grid;
  /** An estimate of its arithmetic and memory operations, by which submits are cut. */
  readonly work: number;
}

/**
 * A kernel that hands each element of its result to `store(i, x)`, `i` counting them in row-major order. It declares
 * neither its uniform block `u` nor its bindings.
 */
export interface Producer {
  readonly name: string;
  /** The fields of its uniform block, each with a comma behind it. */
  readonly fields: string;
  /** The words of these fields. */
  readonly uniforms: readonly Uniform[];
  /** What it reads: the arrays' names, and the types of their elements. */
  readonly inputs: readonly { readonly name: string; readonly type: string; readonly value: BufferValue }[];
  /**
   * Whether it reads the first input, NAME, by `load_NAME(i)`, so that it may be computed on the way: the element `i`,
   * or the vector of 4 elements `i`.
   */
  readonly loadsFirst?: "one" | "quad";
  /** Functions that others may declare too. */
  readonly helpers?: string;
  /** Its entry point and its functions. */
  readonly code: string;
  /** The same with `store_quad(i, x)`, of the four elements from `i`, a multiple of 4, on. For what is stored packed. */
  readonly quadCode?: string | null;
  readonly grid: Grid;
  readonly work: number;
}

export interface Lowering {
  /** Whether the adapter computes on the CPU: workgroup memory costs there, large register tiles pay. */
  readonly isSoftware: boolean;
  /** The name of the variant that is the fastest here, as far as it was measured (see `tune`). */
  variant(site: VariantSite): string;
  result(): BufferValue;
  allocate(shape: Shape, dtype: ComputeType): BufferValue;
  dense(value: Value): BufferValue;
  /** The value in a buffer, by whatever strides. */
  buffer(value: Value): BufferValue;
  /** The node's result, to be computed by an elementwise function with those around it. Operands broadcast. */
  elementwise(f: ElementFunction, operands: readonly Value[], scalars: readonly ScalarReference[]): BufferValue;
  /**
   * The node's result, or `out`, from a kernel whose elements elementwise functions may take before they are stored.
   * The node's result is computed when something else needs it.
   */
  produce(producer: Producer): BufferValue;
  produceInto(producer: Producer, out: BufferValue): void;
  /**
   * Stores an elementwise function's results in `out`, together with what it is computed from.
   * False: nothing was done, since `out` is not in one piece.
   */
  store(f: ElementFunction, operands: readonly Value[], out: BufferValue): boolean;
  dispatch(call: KernelCall): void;
  /** Sets a leaf to zero; what is then added to it is stored in one go. */
  zero(target: BufferValue): void;
}

/** Bindings begin at multiples of 256 bytes; this is how many elements of a root that is. */
export const bindingElements = ({ dtype }: Root): number => 256 / bytesOf(dtype);

/** What remains of a value's offset behind the beginning of its binding. */
export const innerOffset = (value: BufferValue): number => value.offset % bindingElements(value.root);

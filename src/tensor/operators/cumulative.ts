import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { type ComputeType, type DType, wgslType } from "../dtype";
import { normalizeDim, OperatorError, type Shape, sameShape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { full } from "./creation";
import { mul, to } from "./elementwise";
import type { BufferValue, Lowering, Operator } from "./table";
import { cat, narrow, reshape } from "./views";

/** `reverse`: from the last element to the first. */
type ScanAttributes = { readonly dim: number; readonly reverse: boolean };

/**
 * Elements that one invocation takes in turn. Longer rows go in chunks: what each chunk amounts to is scanned, and each
 * chunk continues from what came before it. That also keeps long sums accurate.
 */
const chunkLength = 128;

interface Scan {
  readonly name: string;
  /** What a chunk is summed up by; also the operands. `h` is the running result. */
  readonly state: readonly ("p" | "h")[];
  /** WGSL expressions of each state before the first element. */
  readonly start: Readonly<Record<"p" | "h", string>>;
  /** WGSL statements that take in the operands `x`, `y`. */
  readonly step: string;
}

const sumScan: Scan = { name: "cumsum", state: ["h"], start: { p: "TYPE(1)", h: "TYPE(0)" }, step: "h += x;" };
const productScan: Scan = { name: "cumprod", state: ["h"], start: { p: "TYPE(1)", h: "TYPE(1)" }, step: "h *= x;" };
const linearScanOf: Scan = {
  name: "linearScan",
  state: ["p", "h"],
  start: { p: "TYPE(1)", h: "TYPE(0)" },
  step: "p *= x; h = x * h + y;",
};

/** `chunks`: the scan of each chunk by itself; `first`: a row of one chunk; `rest`: chunks that continue others. */
type Stage = "amounts" | "only" | "continued";

const shaders = new Map<string, Shader>();

function scanShader(scan: Scan, stage: Stage, dtype: ComputeType): Shader {
  const key = `${scan.name} ${stage} ${dtype}`;
  const known = shaders.get(key);
  if (known) return known;
  const type = wgslType[dtype];
  const operands = ["x", "y"].slice(0, scan.state.length);
  const carried = stage === "continued";
  const outputs = stage === "amounts" ? scan.state.map((name) => `out_${name}`) : ["out"];
  const reads = [...operands.map((name) => `in_${name}`), ...(carried ? ["carry"] : [])];
  const bindings = [
    ...reads.map((name) => `var<storage, read> ${name}: array<${type}>;`),
    ...outputs.map((name) => `var<storage, read_write> ${name}: array<${type}>;`),
  ];
  const start = (name: "p" | "h") => scan.start[name].replace("TYPE", type);
  const code = /* wgsl */ `
struct Uniforms { rows: u32, length: u32, inner: u32, chunk: u32, chunks: u32, is_reverse: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
${bindings.map((binding, i) => `@group(0) @binding(${i + 1}) ${binding}`).join("\n")}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let index = id.x + (id.y + id.z * n.y) * n.x * 64u;
  if (index >= u.rows * u.chunks) { return; }
  let row = index % u.rows;
  let k = index / u.rows;
  let base = (row / u.inner) * u.length * u.inner + row % u.inner;
  let end = min((k + 1u) * u.chunk, u.length);
  var p = ${start("p")};
  var h = ${start("h")};
  ${carried ? "if (k > 0u) { h = carry[row * u.chunks + k - 1u]; }" : ""}
  for (var i = k * u.chunk; i < end; i++) {
    let at = base + select(i, u.length - 1u - i, u.is_reverse == 1u) * u.inner;
    ${operands.map((name) => `let ${name} = in_${name}[at];`).join(" ")}
    ${scan.step}
    ${stage === "amounts" ? "" : "out[at] = h;"}
  }
  ${stage === "amounts" ? scan.state.map((name) => `out_${name}[row * u.chunks + k] = ${name};`).join("\n  ") : ""}
}`;
  const shader: Shader = {
    name: `${scan.name} ${stage}`,
    code,
    bindings: [...reads.map(() => "read" as const), ...outputs.map(() => "write" as const)],
  };
  shaders.set(key, shader);
  return shader;
}

interface Rows {
  readonly rows: number;
  readonly length: number;
  readonly inner: number;
}

/** Scans rows of dense operands into `out`, which is dense too. */
function emitScan(
  lowering: Lowering,
  scan: Scan,
  operands: readonly BufferValue[],
  out: BufferValue,
  { rows, length, inner }: Rows,
  reverse: boolean,
): void {
  const { dtype } = out;
  const chunks = Math.ceil(length / chunkLength);
  const call = (stage: Stage, bindings: readonly BufferValue[]) =>
    lowering.dispatch({
      shader: scanShader(scan, stage, dtype),
      bindings,
      uniforms: [rows, length, inner, chunkLength, chunks, reverse ? 1 : 0],
      grid: spread(Math.ceil((rows * chunks) / 64)),
      work: rows * length * 4,
    });
  if (rows * length === 0) return;
  if (chunks === 1) {
    call("only", [...operands, out]);
    return;
  }
  const amounts = scan.state.map(() => lowering.allocate([rows, chunks], dtype));
  const carry = lowering.allocate([rows, chunks], dtype);
  call("amounts", [...operands, ...amounts]);
  emitScan(lowering, scan, amounts, carry, { rows, length: chunks, inner: 1 }, false);
  call("continued", [...operands, carry, out]);
}

function rowsOf(shape: Shape, dim: number): Rows {
  const length = shape[dim]!;
  return { length, inner: sizeOf(shape.slice(dim + 1)), rows: length === 0 ? 0 : sizeOf(shape) / length };
}

function scanRow(scan: Scan, backward: NonNullable<Operator<ScanAttributes>["backward"]>): Operator<ScanAttributes> {
  return {
    name: scan.name,
    infer(inputs) {
      const [x, y] = inputs;
      if (y && !sameShape(x!.shape, y.shape))
        throw new OperatorError(
          scan.name,
          `the operands have shapes [${x!.shape}] and [${y.shape}]; expected equal ones`,
        );
      return x!;
    },
    lower(lowering, { inputs, attributes: { dim, reverse }, shape }) {
      const out = lowering.result();
      const operands = inputs.map((input) => lowering.dense(lowering.buffer(input)));
      emitScan(lowering, scan, operands, out, rowsOf(shape, dim), reverse);
      return out;
    },
    backward,
  };
}

const cumsumRow = scanRow(sumScan, ({ gradient, attributes: { dim, reverse } }) => [
  apply(cumsumRow, [gradient], { dim, reverse: !reverse }),
]);
/** With y the result: the gradient of x_i is the product before it, times the sum over k from i of g_k x_{i+1}...x_k. */
const cumprodRow = scanRow(productScan, ({ inputs: [x], output, gradient, attributes }) => [
  mul(shifted(output, attributes, 1), followingProducts(x!, gradient, attributes)),
]);
/** Operands: a, b. h_i = a_i h_{i-1} + b_i, with 0 before the first. */
const linearScanRow = scanRow(linearScanOf, ({ inputs: [a], output, gradient, attributes, needs }) => {
  const ofB = followingProducts(a!, gradient, attributes);
  return [needs[0] ? mul(ofB, shifted(output, attributes, 0)) : null, ofB];
});

export const cumulative: readonly Operator[] = [cumsumRow, cumprodRow, linearScanRow];

/** The linear scan against the direction of `attributes`: r_i = g_i + x_{i+1} r_{i+1}. */
function followingProducts(x: Tensor, gradient: Tensor, { dim, reverse }: ScanAttributes): Tensor {
  const against = { dim, reverse: !reverse };
  return apply(linearScanRow, [shifted(x, against, 0), gradient], against);
}

/** The element before each in the scan's direction, and `fill` before the first. */
function shifted(x: Tensor, { dim, reverse }: ScanAttributes, fill: number): Tensor {
  const length = x.shape[dim]!;
  if (length === 0) return x;
  const edge = full(x.shape.with(dim, 1), fill);
  const rest = narrow(x, dim, reverse ? 1 : 0, length - 1);
  return cat(reverse ? [rest, edge] : [edge, rest], dim);
}

const over =
  (row: Operator<ScanAttributes>) =>
  (input: Tensor, dim: number, dtype: DType | null = null): Tensor => {
    const d = normalizeDim(row.name, dim, input.ndim);
    const values = to(input, dtype ?? (input.dtype === "bool" ? "int32" : input.dtype));
    return input.ndim === 0
      ? reshape(apply(row, [reshape(values, [1])], { dim: 0, reverse: false }), [])
      : apply(row, [values], { dim: d, reverse: false });
  };

/** The sums of all elements up to each, along `dim`. Integers stay integers. */
export const cumsum = over(cumsumRow);
/** The products of all elements up to each, along `dim`. */
export const cumprod = over(cumprodRow);

/** The product of all elements but each, along `dim`: without division, so that zeros are no problem. */
export function productOfOthers(input: Tensor, dim: number): Tensor {
  const [before, after] = [false, true].map((reverse) => {
    const attributes = { dim, reverse };
    return shifted(apply(cumprodRow, [input], attributes), attributes, 1);
  });
  return mul(before!, after!);
}

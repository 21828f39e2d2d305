import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { normalizeDim, type Shape, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { exp, mul, sub } from "./elementwise";
import { exponentialSum } from "./mathShader";
import { floating } from "./promotion";
import { sum } from "./reduction";
import { rowPerInvocation, rowPerWorkgroup } from "./rowWalk";
import type { BufferValue, Lowering, Operator } from "./table";
import { reshape } from "./views";

type DimAttributes = { readonly dim: number };

/** The rows of a tensor along `dim`: `length` elements, `inner` apart. */
function rowsOf(shape: Shape, dim: number) {
  const length = shape[dim]!;
  const inner = sizeOf(shape.slice(dim + 1));
  return { length, inner, rows: length === 0 ? 0 : sizeOf(shape) / length };
}

/** What a softmax operator's kernels compute. */
interface Formula {
  readonly name: string;
  readonly reads: readonly string[];
  /** Statements for elements that lie apart: `first`, `end` and `u.inner` say where; they store to `out`. */
  readonly apart: string;
  /** Statements for rows of `u.length` vectors from `first` on: `each` is a loop over them, `at` their index. */
  readonly vectors: string;
}

const each = "for (var at = first + lane; at < first + u.length; at += lanes)";
/** A block of a row: its sum is added to those before, so that rounding doesn't grow with each element of a long row. */
const blockLength = 256;
/** Runs a statement that adds to `part` for each of a row's places, and adds up the blocks' parts in NAME. */
const addUp = (name: string, add: string) => /* wgsl */ `
  var ${name} = vec4f();
  for (var block = first + lane; block < first + u.length; block += ${blockLength}u * lanes) {
    let stop = min(block + ${blockLength}u * lanes, first + u.length);
    var part = vec4f();
    for (var at = block; at < stop; at += lanes) { ${add} }
    ${name} += part;
  }`;
/** The same for elements that lie apart. */
const addUpApart = (name: string, term: string) => /* wgsl */ `
  var ${name} = 0.0;
  for (var block = first; block < end; block += ${blockLength}u * u.inner) {
    let stop = min(block + ${blockLength}u * u.inner, end);
    var part = 0.0;
    for (var at = block; at < stop; at += u.inner) { part += ${term}; }
    ${name} += part;
  }`;

const softmaxApart = (finish: string) => /* wgsl */ `
  var top = in_x[first];
  for (var at = first + u.inner; at < end; at += u.inner) { top = max(top, in_x[at]); }
  ${addUpApart("total", "exp(in_x[at] - top)")}
  total = sum_of_exponentials(total);
  for (var at = first; at < end; at += u.inner) {
    let x = in_x[at];
    ${finish}
  }`;
const largestVector = /* wgsl */ `
  var tops = in_x[first];
  ${each} { tops = max(tops, in_x[at]); }
  let top = all_max(max(max(tops.x, tops.y), max(tops.z, tops.w)), lane);`;

const softmaxFormula: Formula = {
  name: "softmax",
  reads: ["in_x"],
  apart: softmaxApart("out[at] = exp(x - top) / total;"),
  vectors: /* wgsl */ `${largestVector}
  ${addUp("sums", "let e = exp(in_x[at] - top); out[at] = e; part += e;")}
  let total = sum_of_exponentials(all_sum(sums.x + sums.y + sums.z + sums.w, lane));
  ${each} { out[at] = out[at] / total; }`,
};
const logSoftmaxFormula: Formula = {
  name: "logSoftmax",
  reads: ["in_x"],
  apart: softmaxApart("out[at] = (x - top) - log_of_exponentials(total);"),
  vectors: /* wgsl */ `${largestVector}
  ${addUp("sums", "part += exp(in_x[at] - top);")}
  let shift = log_of_exponentials(all_sum(sums.x + sums.y + sums.z + sums.w, lane));
  ${each} { out[at] = (in_x[at] - top) - shift; }`,
};

const gradientFormula = (name: string, summed: string, result: string): Formula => ({
  name,
  reads: ["gradient", "result"],
  apart: /* wgsl */ `
  ${addUpApart("total", summed)}
  for (var at = first; at < end; at += u.inner) { out[at] = ${result}; }`,
  vectors: /* wgsl */ `
  ${addUp("sums", `part += ${summed};`)}
  let total = all_sum(sums.x + sums.y + sums.z + sums.w, lane);
  ${each} { out[at] = ${result}; }`,
});
const softmaxGradientFormula = gradientFormula(
  "softmaxGradient",
  "gradient[at] * result[at]",
  "(gradient[at] - total) * result[at]",
);
const logSoftmaxGradientFormula = gradientFormula(
  "logSoftmaxGradient",
  "gradient[at]",
  "gradient[at] - exp(result[at]) * total",
);

/** How a kernel goes through rows: elements that lie apart, or whole vectors that one or several invocations take. */
type Walk = "apart" | "vectors" | "shared vectors";

function shaderOf({ name, reads, apart, vectors }: Formula, walk: Walk): Shader {
  const type = walk === "apart" ? "f32" : "vec4f";
  const declared = reads.map((of, i) => `@group(0) @binding(${i + 1}) var<storage, read> ${of}: array<${type}>;`);
  const head = /* wgsl */ `
struct Uniforms { rows: u32, length: u32, inner: u32 }
@group(0) @binding(0) var<uniform> u: Uniforms;
${declared.join("\n")}
@group(0) @binding(${reads.length + 1}) var<storage, read_write> out: array<${type}>;
${exponentialSum}`;
  const fromFirst = `let first = row * u.length; ${vectors}`;
  const code = {
    apart: rowPerInvocation(`
  let first = (row / u.inner) * u.length * u.inner + row % u.inner;
  let end = first + u.length * u.inner;
  ${apart}`),
    vectors: rowPerInvocation(fromFirst),
    "shared vectors": rowPerWorkgroup(fromFirst),
  }[walk];
  return { name: `${name} ${walk}`, code: head + code, bindings: [...reads.map(() => "read" as const), "write"] };
}

function emitRows(
  lowering: Lowering,
  formula: Formula,
  bindings: readonly BufferValue[],
  shape: Shape,
  dim: number,
): void {
  const { rows, length, inner } = rowsOf(shape, dim);
  const inVectors = inner === 1 && length % 4 === 0;
  const walk = inVectors ? (lowering.isSoftware ? "vectors" : "shared vectors") : "apart";
  lowering.dispatch({
    shader: shaderOf(formula, walk),
    bindings,
    uniforms: [rows, inVectors ? length / 4 : length, inner],
    grid: spread(walk === "shared vectors" ? rows : Math.ceil(rows / 64)),
    work: rows * length * 20,
  });
}

function forwardRow(formula: Formula, backward: Operator<DimAttributes>["backward"]): Operator<DimAttributes> {
  return {
    name: formula.name,
    takesNarrow: true,
    infer: ([input]) => input!,
    lower(lowering, { inputs: [input], attributes: { dim }, shape }) {
      const out = lowering.result();
      emitRows(lowering, formula, [lowering.dense(input!), out], shape, dim);
      return out;
    },
    ...(backward && { backward }),
  };
}

function gradientRow(formula: Formula, backward: Operator<DimAttributes>["backward"]): Operator<DimAttributes> {
  return {
    name: formula.name,
    takesNarrow: true,
    infer: ([gradient]) => gradient!,
    lower(lowering, { inputs: [gradient, result], attributes: { dim }, shape }) {
      const out = lowering.result();
      emitRows(lowering, formula, [lowering.dense(gradient!), lowering.dense(result!), out], shape, dim);
      return out;
    },
    ...(backward && { backward }),
  };
}

const softmaxRow = forwardRow(softmaxFormula, ({ gradient, output, attributes }) => [
  apply(softmaxGradientRow, [gradient, output], attributes),
]);
const logSoftmaxRow = forwardRow(logSoftmaxFormula, ({ gradient, output, attributes }) => [
  apply(logSoftmaxGradientRow, [gradient, output], attributes),
]);
/** Inputs: the gradient g and the result y. (g - sum(g y)) y, whose matrix over g is symmetric. */
const softmaxGradientRow = gradientRow(
  softmaxGradientFormula,
  ({ gradient, inputs: [g, y], attributes: { dim }, needs }) => {
    const total = (a: Tensor) => sum(mul(a, y!), dim, true);
    return [
      needs[0] ? apply(softmaxGradientRow, [gradient, y!], { dim }) : null,
      needs[1] ? sub(mul(gradient, sub(g!, total(g!))), mul(g!, total(gradient))) : null,
    ];
  },
);
/** Inputs: the gradient g and the result y. g - exp(y) sum(g). */
const logSoftmaxGradientRow = gradientRow(
  logSoftmaxGradientFormula,
  ({ gradient, inputs: [g, y], attributes: { dim }, needs }) => {
    const weighted = mul(gradient, exp(y!));
    return [
      needs[0] ? sub(gradient, sum(weighted, dim, true)) : null,
      needs[1] ? mul(mul(weighted, -1), sum(g!, dim, true)) : null,
    ];
  },
);

export const softmax: readonly Operator[] = [softmaxRow, logSoftmaxRow, softmaxGradientRow, logSoftmaxGradientRow];

const over = (row: Operator<DimAttributes>) => (input: Tensor, dim: number) => {
  const d = normalizeDim(row.name, dim, input.ndim);
  const values = floating(input);
  return values.ndim === 0
    ? reshape(apply(row, [reshape(values, [1])], { dim: 0 }), [])
    : apply(row, [values], { dim: d });
};

/** exp(x) / sum(exp(x)) along `dim`, without overflow. */
export const softmaxOver = over(softmaxRow);
/** log(softmax(x)) along `dim`, without underflow. */
export const logSoftmax = over(logSoftmaxRow);
/** The gradient of softmax's input from that of its result. */
export const softmaxGradient = (gradient: Tensor, result: Tensor, dim: number): Tensor =>
  apply(softmaxGradientRow, [gradient, result], { dim });

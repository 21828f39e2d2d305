import { apply } from "../apply";
import { autocasting } from "../autocast";
import { computeType, type DType, isFloating } from "../dtype";
import { OperatorError } from "../shape";
import { Tensor } from "../tensor";
import { elementwiseRow as row } from "./elementwiseRow";
import {
  erf as erfShader,
  exp as expShader,
  isNan,
  log as logShader,
  normalDensity,
  pow as powShader,
  tanh as tanhShader,
  wideTrigonometry,
} from "./mathShader";
import { binary, promoted, unary, unaryNumeric } from "./promotion";
import { floorDivide, truncDivide } from "./rounding";
import type { Operator } from "./table";

export type Operand = Tensor | number;

const first = <T>(list: readonly T[]): T => list[0]!;

// Arithmetic

const addRow = row({ name: "add", body: "return a + b;", gradient: ({ gradient }) => [gradient, gradient] });
const subRow = row({
  name: "sub",
  body: "return a - b;",
  gradient: ({ gradient, needs }) => [gradient, needs[1] ? neg(gradient) : null],
});
const mulRow = row({
  name: "mul",
  body: "return a * b;",
  gradient: ({ gradient, inputs: [a, b], needs }) => [
    needs[0] ? mul(gradient, b!) : null,
    needs[1] ? mul(gradient, a!) : null,
  ],
});
const divRow = row({
  name: "div",
  body: "return a / b;",
  gradient: ({ gradient, inputs: [, b], output, needs }) => [
    div(gradient, b!),
    needs[1] ? neg(div(mul(gradient, output), b!)) : null,
  ],
});
const powRow = row({
  name: "pow",
  body: "return power(a, b);",
  helpers: isNan + powShader,
  gradient: ({ gradient, inputs: [a, b], output, needs }) => [
    needs[0] ? mul(gradient, where(eq(b!, 0), 0, mul(b!, pow(a!, sub(b!, 1))))) : null,
    needs[1] ? mul(gradient, where(logicalAnd(eq(a!, 0), ge(b!, 0)), 0, mul(output, log(a!)))) : null,
  ],
});
/** A negative exponent gives what is left of the true value without its fraction. */
const powIntegerRow = row({
  name: "powInteger",
  body: `if (b < 0) { return select(select(0, 1, a == 1), select(1, -1, (b & 1) == 1), a == -1); }
    var result = 1;
    var square = a;
    for (var left = b; left > 0; left >>= 1u) {
      if ((left & 1) == 1) { result *= square; }
      square *= square;
    }
    return result;`,
});
const maximumRow = row({
  name: "maximum",
  body: "if (is_nan(f32(a))) { return a; } if (is_nan(f32(b))) { return b; } return select(b, a, a > b);",
  helpers: isNan,
  gradient: ({ gradient, inputs: [a, b] }) => shareGradient(gradient, gt(a!, b!), eq(a!, b!)),
});
const minimumRow = row({
  name: "minimum",
  body: "if (is_nan(f32(a))) { return a; } if (is_nan(f32(b))) { return b; } return select(b, a, a < b);",
  helpers: isNan,
  gradient: ({ gradient, inputs: [a, b] }) => shareGradient(gradient, lt(a!, b!), eq(a!, b!)),
});

/** Operands that tie share the gradient, as PyTorch has it. */
function shareGradient(gradient: Tensor, chosen: Tensor, tied: Tensor): Tensor[] {
  const half = mul(gradient, 0.5);
  return [where(tied, half, where(chosen, gradient, 0)), where(tied, half, where(chosen, 0, gradient))];
}

// Comparison

const comparison = (name: string, operator: string) =>
  row({ name, body: `return select(0u, 1u, a ${operator} b);`, result: "bool" });
const eqRow = comparison("eq", "==");
/** Not `!=`, which some adapters compute as false for NaN. */
const neRow = row({ name: "ne", body: "return select(1u, 0u, a == b);", result: "bool" });
const ltRow = comparison("lt", "<");
const leRow = comparison("le", "<=");
const gtRow = comparison("gt", ">");
const geRow = comparison("ge", ">=");
const isnanRow = row({ name: "isnan", body: "return select(0u, 1u, is_nan(a));", helpers: isNan, result: "bool" });
const logicalAndRow = row({ name: "logicalAnd", body: "return a & b;", result: "bool" });
const logicalOrRow = row({ name: "logicalOr", body: "return a | b;", result: "bool" });
const logicalNotRow = row({ name: "logicalNot", body: "return a ^ 1u;", result: "bool" });

/** Operands: condition (bool), then, otherwise. */
const whereRow = row({
  name: "where",
  body: "return select(c, b, a != 0u);",
  gradient: ({ gradient, inputs: [condition], needs }) => [
    null,
    needs[1] ? where(condition!, gradient, 0) : null,
    needs[2] ? where(condition!, 0, gradient) : null,
  ],
});

// One operand

const negRow = row({ name: "neg", body: "return -a;", gradient: ({ gradient }) => [neg(gradient)] });
const absRow = row({
  name: "abs",
  body: "return abs(a);",
  gradient: ({ gradient, inputs }) => [mul(gradient, sign(first(inputs)))],
});
const signRow = row({
  name: "sign",
  body: "return sign(a);",
  gradient: ({ gradient }) => [mul(gradient, 0)],
});
const expRow = row({
  name: "exp",
  body: "return safe_exp(a);",
  helpers: expShader,
  gradient: ({ gradient, output }) => [mul(gradient, output)],
});
const logRow = row({
  name: "log",
  body: "return safe_log(a);",
  helpers: logShader,
  gradient: ({ gradient, inputs }) => [div(gradient, first(inputs))],
});
const sqrtRow = row({
  name: "sqrt",
  body: "return sqrt(a);",
  gradient: ({ gradient, output }) => [div(gradient, mul(output, 2))],
});
const rsqrtRow = row({
  name: "rsqrt",
  body: "return 1.0 / sqrt(a);",
  gradient: ({ gradient, output }) => [mul(mul(gradient, -0.5), mul(output, mul(output, output)))],
});
const reciprocalRow = row({
  name: "reciprocal",
  body: "return 1.0 / a;",
  gradient: ({ gradient, output }) => [neg(mul(gradient, mul(output, output)))],
});
const sinRow = row({
  name: "sin",
  body: "return wide_sine(a, 0);",
  helpers: wideTrigonometry,
  gradient: ({ gradient, inputs }) => [mul(gradient, cos(first(inputs)))],
});
const cosRow = row({
  name: "cos",
  body: "return wide_sine(a, 1);",
  helpers: wideTrigonometry,
  gradient: ({ gradient, inputs }) => [neg(mul(gradient, sin(first(inputs))))],
});
const floorRow = row({ name: "floor", body: "return floor(a);", gradient: ({ gradient }) => [mul(gradient, 0)] });
const truncRow = row({ name: "trunc", body: "return trunc(a);", gradient: ({ gradient }) => [mul(gradient, 0)] });
const tanhRow = row({
  name: "tanh",
  body: "return safe_tanh(a);",
  helpers: tanhShader,
  gradient: ({ gradient, output }) => [mul(gradient, sub(1, mul(output, output)))],
});
const sigmoidRow = row({
  name: "sigmoid",
  body: "let e = exp(-abs(a)); return select(e, 1.0, a >= 0.0) / (1.0 + e);",
  gradient: ({ gradient, output }) => [mul(gradient, mul(output, sub(1, output)))],
});
const erfRow = row({
  name: "erf",
  body: "return erf(a);",
  helpers: erfShader,
  gradient: ({ gradient, inputs: [x] }) => [mul(gradient, mul(exp(neg(mul(x!, x!))), 2 / Math.sqrt(Math.PI)))],
});
const reluRow = row({
  name: "relu",
  body: "return select(a, 0, a <= 0);",
  gradient: ({ gradient, output }) => [apply(reluGradientRow, [gradient, output], {})],
});
/** Operands: gradient, relu's result. */
const reluGradientRow = row({
  name: "reluGradient",
  body: "return select(0.0, a, b > 0.0);",
  gradient: ({ gradient, inputs: [, output] }) => [apply(reluGradientRow, [gradient, output!], {}), null],
});
/** Scalars: the bounds. */
const clampRow = row({
  name: "clamp",
  body: "if (is_nan(a)) { return a; } return min(max(a, s0), s1);",
  helpers: isNan,
  scalars: 2,
  gradient: ({ gradient, inputs: [x], scalars: [low, high] }) => [
    where(logicalAnd(ge(x!, low!), le(x!, high!)), gradient, 0),
  ],
});

const castBody = { float32: "f32(a)", int32: "i32(a)", bool: "select(1u, 0u, a == 0)" } as const;
const castRows = {
  float32: castTo("float32"),
  float16: castTo("float16"),
  bfloat16: castTo("bfloat16"),
  int32: castTo("int32"),
  bool: castTo("bool"),
} as const satisfies Record<DType, Operator>;

function castTo(dtype: DType): Operator {
  const cast = row({
    name: `to ${dtype}`,
    body: `return ${castBody[computeType(dtype)]};`,
    result: dtype,
    gradient: ({ gradient, inputs }) => [to(gradient, first(inputs).dtype)],
  });
  if (dtype !== "float32") return cast;
  // Kernels read narrow floats as float32 wherever they lie.
  return {
    ...cast,
    lower: (lowering, node) => (first(node.inputs).dtype === dtype ? first(node.inputs) : cast.lower(lowering, node)),
  };
}

// GELU

const geluHelpers = erfShader + normalDensity;
const geluRow = row({
  name: "gelu",
  body: "return 0.5 * a * (1.0 + erf(a * 0.7071067811865476));",
  helpers: geluHelpers,
  gradient: ({ gradient, inputs: [x] }) => [apply(geluGradientRow, [gradient, x!], {})],
});
/** Operands: gradient, x. The derivative is the normal distribution's cdf + x * density. */
const geluGradientRow = row({
  name: "geluGradient",
  body: "return a * (0.5 * (1.0 + erf(b * 0.7071067811865476)) + b * normal_density(b));",
  helpers: geluHelpers,
  gradient: ({ gradient, inputs: [g, x] }) => [
    apply(geluGradientRow, [gradient, x!], {}),
    mul(mul(gradient, g!), mul(densityOf(x!), sub(2, mul(x!, x!)))),
  ],
});

const densityOf = (x: Tensor): Tensor => mul(exp(mul(mul(x, x), -0.5)), 1 / Math.sqrt(2 * Math.PI));

const geluTanhInner = "0.7978845608028654 * (X + 0.044715 * X * X * X)";
const geluTanhRow = row({
  name: "geluTanh",
  body: `return 0.5 * a * (1.0 + safe_tanh(${geluTanhInner.replaceAll("X", "a")}));`,
  helpers: tanhShader,
  gradient: ({ gradient, inputs: [x] }) => [apply(geluTanhGradientRow, [gradient, x!], {})],
});
/** Operands: gradient, x. */
const geluTanhGradientRow = row({
  name: "geluTanhGradient",
  body: `let t = safe_tanh(${geluTanhInner.replaceAll("X", "b")});
    let inner = 0.7978845608028654 * (1.0 + 0.134145 * b * b);
    return a * 0.5 * (1.0 + t + b * (1.0 - t * t) * inner);`,
  helpers: tanhShader,
  gradient: ({ gradient, inputs: [g, x] }) => {
    const square = mul(x!, x!);
    const t = tanh(mul(mul(x!, add(mul(square, 0.044715), 1)), Math.sqrt(2 / Math.PI)));
    const inner = mul(add(mul(square, 0.134145), 1), Math.sqrt(2 / Math.PI));
    const slope = sub(1, mul(t, t));
    // The second derivative: slope * (inner + x * inner' / 2 - x * t * inner^2), with inner' = 2 * 0.134145 * c * x.
    const second = mul(
      slope,
      sub(add(inner, mul(square, 0.134145 * Math.sqrt(2 / Math.PI))), mul(mul(x!, t), mul(inner, inner))),
    );
    return [apply(geluTanhGradientRow, [gradient, x!], {}), mul(mul(gradient, g!), second)];
  },
});

export const elementwise: readonly Operator[] = [
  addRow,
  subRow,
  mulRow,
  divRow,
  powRow,
  powIntegerRow,
  maximumRow,
  minimumRow,
  eqRow,
  neRow,
  ltRow,
  leRow,
  gtRow,
  geRow,
  isnanRow,
  logicalAndRow,
  logicalOrRow,
  logicalNotRow,
  whereRow,
  negRow,
  absRow,
  signRow,
  expRow,
  logRow,
  sqrtRow,
  rsqrtRow,
  reciprocalRow,
  sinRow,
  cosRow,
  floorRow,
  truncRow,
  tanhRow,
  sigmoidRow,
  erfRow,
  reluRow,
  reluGradientRow,
  clampRow,
  castRows.float32,
  castRows.float16,
  castRows.bfloat16,
  castRows.int32,
  castRows.bool,
  geluRow,
  geluGradientRow,
  geluTanhRow,
  geluTanhGradientRow,
];

/** The values as another type: towards zero to int32, 1 for what isn't 0 to bool. */
export function to(input: Tensor, dtype: DType): Tensor {
  return input.dtype === dtype ? input : apply(castRows[dtype], [input], {});
}

export const add = (a: Operand, b: Operand, alpha = 1): Tensor =>
  apply(addRow, promoted(a, alpha === 1 ? b : mul(b, alpha), "int32"), {});
export const sub = (a: Operand, b: Operand, alpha = 1): Tensor =>
  apply(subRow, promoted(a, alpha === 1 ? b : mul(b, alpha), "int32"), {});
export const mul = binary(mulRow, "int32");
/** @param roundingMode rounds the quotient towards zero or down, and keeps integers; null: no rounding. */
export function div(a: Operand, b: Operand, roundingMode: "trunc" | "floor" | null = null): Tensor {
  if (roundingMode === null) return apply(divRow, promoted(a, b, "float32"), {});
  return roundingMode === "trunc" ? truncDivide(a, b) : floorDivide(a, b);
}
export const maximum = binary(maximumRow, "int32");
export const minimum = binary(minimumRow, "int32");
export const eq = binary(eqRow, "bool");
export const ne = binary(neRow, "bool");
export const lt = binary(ltRow, "bool");
export const le = binary(leRow, "bool");
export const gt = binary(gtRow, "bool");
export const ge = binary(geRow, "bool");
export const isnan = unary(isnanRow);
export const logicalAnd = (a: Tensor, b: Tensor): Tensor => apply(logicalAndRow, [to(a, "bool"), to(b, "bool")], {});
export const logicalOr = (a: Tensor, b: Tensor): Tensor => apply(logicalOrRow, [to(a, "bool"), to(b, "bool")], {});
export const logicalNot = (input: Tensor): Tensor => apply(logicalNotRow, [to(input, "bool")], {});

/** `input` where the condition holds, `other` elsewhere. */
export function where(condition: Tensor, input: Operand, other: Operand): Tensor {
  if (condition.dtype !== "bool")
    throw new OperatorError("where", `the condition is ${condition}; expected bool, such as a comparison gives`);
  return apply(whereRow, [condition, ...promoted(input, other)], {});
}

/** Integers stay integers. */
export const pow = autocasting("pow", (base: Operand, exponent: Operand): Tensor => {
  if (base instanceof Tensor && typeof exponent === "number" && isFloating(base.dtype)) {
    if (exponent === 1) return base;
    if (exponent === 2) return mul(base, base);
    if (exponent === 3) return mul(mul(base, base), base);
    if (exponent === 0.5) return sqrt(base);
    if (exponent === -1) return reciprocal(base);
  }
  const operands = promoted(base, exponent, "int32");
  return apply(operands[0].dtype === "int32" ? powIntegerRow : powRow, operands, {});
});

export const neg = unaryNumeric(negRow);
export const abs = unaryNumeric(absRow);
export const sign = unaryNumeric(signRow);
export const exp = unary(expRow);
export const log = unary(logRow);
export const sqrt = unary(sqrtRow);
export const rsqrt = unary(rsqrtRow);
export const reciprocal = unary(reciprocalRow);
export const sin = unary(sinRow);
export const cos = unary(cosRow);
export const floor = unary(floorRow);
export const trunc = unary(truncRow);
export const tanh = unary(tanhRow);
export const sigmoid = unary(sigmoidRow);
export const erf = unary(erfRow);
export const relu = unaryNumeric(reluRow);

/** @param approximate "none" is exact, with the error function; "tanh" is the usual approximation. */
export function gelu(input: Tensor, approximate: "none" | "tanh" = "none"): Tensor {
  return apply(approximate === "none" ? geluRow : geluTanhRow, [input], {});
}

/** Limits values to [min, max]; null is no limit. */
export function clamp(input: Tensor, min: Operand | null = null, max: Operand | null = null): Tensor {
  if (min === null && max === null)
    throw new OperatorError("clamp", "min and max are both null; expected at least one of them");
  if (min instanceof Tensor || max instanceof Tensor || !isFloating(input.dtype)) {
    const low = min === null ? input : clampSide(input, min, "low");
    return max === null ? low : clampSide(low, max, "high");
  }
  return apply(clampRow, [input], {}, [min ?? -Infinity, max ?? Infinity]);
}

/** Unlike maximum and minimum, a tie gives the input all of the gradient. */
function clampSide(input: Tensor, bound: Operand, side: "low" | "high"): Tensor {
  const outside = side === "low" ? lt(input, bound) : gt(input, bound);
  return where(outside, bound, input);
}

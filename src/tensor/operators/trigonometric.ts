import { add, div, mul, neg, reciprocal, sqrt, sub } from "./elementwise";
import { elementwiseRow as row } from "./elementwiseRow";
import { arcsine, arctangent, arctangent2, hyperbolic, isNan, wideTrigonometry } from "./mathShader";
import { binary, unary } from "./promotion";
import type { Operator } from "./table";

const tanRow = row({
  name: "tan",
  body: "return wide_tangent(a);",
  helpers: wideTrigonometry,
  gradient: ({ gradient, output }) => [mul(gradient, add(mul(output, output), 1))],
});
const asinRow = row({
  name: "asin",
  body: "return arcsine(a);",
  helpers: arcsine,
  gradient: ({ gradient, inputs: [x] }) => [div(gradient, sqrt(sub(1, mul(x!, x!))))],
});
const acosRow = row({
  name: "acos",
  body: "return arccosine(a);",
  helpers: arcsine,
  gradient: ({ gradient, inputs: [x] }) => [neg(div(gradient, sqrt(sub(1, mul(x!, x!)))))],
});
const atanRow = row({
  name: "atan",
  body: "if (is_nan(a)) { return a; } return arctangent(a);",
  helpers: isNan + arctangent,
  gradient: ({ gradient, inputs: [x] }) => [div(gradient, add(mul(x!, x!), 1))],
});
/** Operands: y, x. */
const atan2Row = row({
  name: "atan2",
  body: "return arctangent2(a, b);",
  helpers: arctangent2,
  gradient({ gradient, inputs: [y, x], needs }) {
    const scaled = mul(gradient, reciprocal(add(mul(y!, y!), mul(x!, x!))));
    return [needs[0] ? mul(scaled, x!) : null, needs[1] ? neg(mul(scaled, y!)) : null];
  },
});
const sinhRow = row({
  name: "sinh",
  body: "return hyperbolic_sine(a);",
  helpers: hyperbolic,
  gradient: ({ gradient, inputs: [x] }) => [mul(gradient, cosh(x!))],
});
const coshRow = row({
  name: "cosh",
  body: "return hyperbolic_cosine(a);",
  helpers: hyperbolic,
  gradient: ({ gradient, inputs: [x] }) => [mul(gradient, sinh(x!))],
});

export const trigonometric: readonly Operator[] = [tanRow, asinRow, acosRow, atanRow, atan2Row, sinhRow, coshRow];

export const tan = unary(tanRow);
export const asin = unary(asinRow);
export const acos = unary(acosRow);
export const atan = unary(atanRow);
/** The angle of the point (x, y) = (`other`, `input`), from -pi to pi. */
export const atan2 = binary(atan2Row, "float32");
export const sinh = unary(sinhRow);
export const cosh = unary(coshRow);

import { apply } from "../apply";
import { isFloating } from "../dtype";
import { OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { div, mul, neg, type Operand, to, trunc } from "./elementwise";
import { elementwiseRow as row } from "./elementwiseRow";
import { floatModulo } from "./mathShader";
import { promoted, unary } from "./promotion";
import type { Operator } from "./table";

const ceilRow = row({ name: "ceil", body: "return ceil(a);", gradient: ({ gradient }) => [mul(gradient, 0)] });
/** Ties go to even numbers. */
const roundRow = row({ name: "round", body: "return round(a);", gradient: ({ gradient }) => [mul(gradient, 0)] });
const fracRow = row({ name: "frac", body: "return a - trunc(a);", gradient: ({ gradient }) => [gradient] });
const fmodRow = row({
  name: "fmod",
  body: "return float_modulo(a, b);",
  helpers: floatModulo,
  gradient: ({ gradient, inputs: [a, b], needs }) => [
    gradient,
    needs[1] ? neg(mul(gradient, trunc(div(a!, b!)))) : null,
  ],
});
const fmodIntegerRow = row({ name: "fmodInteger", body: "return a % b;" });
const remainderRow = row({
  name: "remainder",
  body: "return float_remainder(a, b);",
  helpers: floatModulo,
  gradient: ({ gradient, inputs: [a, b], needs }) => [
    gradient,
    needs[1] ? neg(mul(gradient, floorDivide(a!, b!))) : null,
  ],
});
const remainderIntegerRow = row({
  name: "remainderInteger",
  body: "let r = a % b; return select(r, r + b, r != 0 && (r < 0) != (b < 0));",
});
/** The quotient of the true values, rounded down, where a division may have rounded up to the next integer. */
const floorDivideRow = row({
  name: "floorDivide",
  body: `if (b == 0.0) { return a / b; }
    let rest = float_modulo(a, b);
    var quotient = (a - rest) / b;
    if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) { quotient -= 1.0; }
    let down = floor(quotient);
    return select(down, down + 1.0, quotient - down > 0.5);`,
  helpers: floatModulo,
  gradient: ({ gradient }) => [mul(gradient, 0), mul(gradient, 0)],
});
const floorDivideIntegerRow = row({
  name: "floorDivideInteger",
  body: "let q = a / b; return select(q, q - 1, q * b != a && (a < 0) != (b < 0));",
});
const truncDivideIntegerRow = row({ name: "truncDivideInteger", body: "return a / b;" });

export const rounding: readonly Operator[] = [
  ceilRow,
  roundRow,
  fracRow,
  fmodRow,
  fmodIntegerRow,
  remainderRow,
  remainderIntegerRow,
  floorDivideRow,
  floorDivideIntegerRow,
  truncDivideIntegerRow,
];

/** A row for float32 and one for int32. */
function ofType(floats: Operator, integers: Operator): (a: Operand, b: Operand) => Tensor {
  return (a, b) => {
    const operands = promoted(a, b, "int32");
    return apply(operands[0].dtype === "int32" ? integers : floats, operands, {});
  };
}

const integersAsTheyAre = (of: (input: Tensor) => Tensor) => (input: Tensor) =>
  input.dtype === "int32" ? input : of(input);

export const ceil = integersAsTheyAre(unary(ceilRow));
/** x without its integer part; it has x's sign. */
export const frac = unary(fracRow);
/** What remains of a division whose quotient is rounded towards zero: it has the dividend's sign. Exact. */
export const fmod = ofType(fmodRow, fmodIntegerRow);
/** What remains of a division whose quotient is rounded down: it has the divisor's sign. */
export const remainder = ofType(remainderRow, remainderIntegerRow);
/** The quotient, rounded down. Integers stay integers. */
export const floorDivide = ofType(floorDivideRow, floorDivideIntegerRow);

/** The quotient, rounded towards zero. Integers stay integers. */
export const truncDivide = (a: Operand, b: Operand): Tensor => {
  const operands = promoted(a, b, "int32");
  return operands[0].dtype === "int32" ? apply(truncDivideIntegerRow, operands, {}) : trunc(div(a, b));
};

/** Rounds to a number of decimals, which may be negative; ties go to even. */
export function round(input: Tensor, decimals = 0): Tensor {
  if (!Number.isInteger(decimals)) throw new OperatorError("round", `decimals is ${decimals}; expected an integer`);
  if (!isFloating(input.dtype)) return to(input, "int32");
  if (decimals === 0) return apply(roundRow, [input], {});
  const scale = 10 ** Math.abs(decimals);
  return decimals > 0
    ? div(apply(roundRow, [mul(input, scale)], {}), scale)
    : mul(apply(roundRow, [div(input, scale)], {}), scale);
}

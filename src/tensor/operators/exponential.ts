import { add, div, eq, exp, le, log, logicalAnd, mul, sigmoid, sub, where } from "./elementwise";
import { elementwiseRow as row } from "./elementwiseRow";
import {
  expm1 as expm1Shader,
  isNan,
  log1p as log1pShader,
  log2 as log2Shader,
  log10 as log10Shader,
  log as logShader,
} from "./mathShader";
import { binary, unary } from "./promotion";
import type { Operator } from "./table";

const exp2Row = row({
  name: "exp2",
  body: "return select(exp2(a), a, is_nan(a));",
  helpers: isNan,
  gradient: ({ gradient, output }) => [mul(gradient, mul(output, Math.LN2))],
});
const expm1Row = row({
  name: "expm1",
  body: "return exp_minus_one(a);",
  helpers: expm1Shader,
  // exp(x) and not the output plus 1, which is 0 where the output rounds to -1.
  gradient: ({ gradient, inputs: [x] }) => [mul(gradient, exp(x!))],
});
const log1pRow = row({
  name: "log1p",
  body: "return log_one_plus(a);",
  helpers: log1pShader,
  gradient: ({ gradient, inputs: [x] }) => [div(gradient, add(x!, 1))],
});
const log2Row = row({
  name: "log2",
  body: "return safe_log2(a);",
  helpers: log2Shader,
  gradient: ({ gradient, inputs: [x] }) => [div(gradient, mul(x!, Math.LN2))],
});
const log10Row = row({
  name: "log10",
  body: "return safe_log10(a);",
  helpers: log10Shader,
  gradient: ({ gradient, inputs: [x] }) => [div(gradient, mul(x!, Math.LN10))],
});
const logaddexpRow = row({
  name: "logaddexp",
  // Equal infinities have no difference.
  body: `if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    if (a == b) { return a + 0.6931471805599453; }
    return max(a, b) + log_one_plus(exp(-abs(a - b)));`,
  helpers: isNan + log1pShader,
  gradient: ({ gradient, inputs: [a, b], needs }) => [
    needs[0] ? mul(gradient, sigmoid(sub(a!, b!))) : null,
    needs[1] ? mul(gradient, sigmoid(sub(b!, a!))) : null,
  ],
});
/** a log(b), which is 0 where a is. */
const xlogyRow = row({
  name: "xlogy",
  body: "if (is_nan(b)) { return b; } if (a == 0.0) { return 0.0; } return a * safe_log(b);",
  helpers: isNan + logShader,
  gradient: ({ gradient, inputs: [a, b], needs }) => [
    needs[0] ? mul(gradient, where(logicalAnd(eq(a!, 0), le(b!, 0)), 0, log(b!))) : null,
    needs[1] ? div(mul(gradient, a!), b!) : null,
  ],
});

export const exponential: readonly Operator[] = [
  exp2Row,
  expm1Row,
  log1pRow,
  log2Row,
  log10Row,
  logaddexpRow,
  xlogyRow,
];

export const exp2 = unary(exp2Row);
/** exp(x) - 1, accurate for small x. */
export const expm1 = unary(expm1Row);
/** log(1 + x), accurate for small x. */
export const log1p = unary(log1pRow);
export const log2 = unary(log2Row);
export const log10 = unary(log10Row);
/** log(exp(a) + exp(b)), without overflow. */
export const logaddexp = binary(logaddexpRow, "float32");
/** a log(b): 0 where a is 0, even if b is too. */
export const xlogy = binary(xlogyRow, "float32");

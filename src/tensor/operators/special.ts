import { apply } from "../apply";
import { autocasting } from "../autocast";
import type { Tensor } from "../tensor";
import { add, div, ge, isnan, le, logicalOr, mul, type Operand, sub, to, where } from "./elementwise";
import { elementwiseRow as row } from "./elementwiseRow";
import { isNan } from "./mathShader";
import { asTensor, binary, floating, unary } from "./promotion";
import type { Operator } from "./table";

// Classes of numbers, told by their bits.

const isfiniteRow = row({
  name: "isfinite",
  body: "return select(0u, 1u, (bitcast<u32>(a) & 0x7fffffffu) < 0x7f800000u);",
  result: "bool",
});
const isinfRow = row({
  name: "isinf",
  body: "return select(0u, 1u, (bitcast<u32>(a) & 0x7fffffffu) == 0x7f800000u);",
  result: "bool",
});
const logicalXorRow = row({ name: "logicalXor", body: "return a ^ b;", result: "bool" });
/** Scalars: what stands for NaN, infinity and minus infinity. */
const nanToNumRow = row({
  name: "nanToNum",
  body: `let bits = bitcast<u32>(a);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return s0; }
    if (bits == 0x7f800000u) { return s1; }
    return select(a, s2, bits == 0xff800000u);`,
  scalars: 3,
  gradient: ({ gradient, inputs: [x] }) => [where(isfinite(x!), gradient, 0)],
});

// Extremes that pass over NaN

const chosen = (gradient: Tensor, first: Tensor) => [where(first, gradient, 0), where(first, 0, gradient)];
const fmaxRow = row({
  name: "fmax",
  body: "if (is_nan(f32(a))) { return b; } if (is_nan(f32(b))) { return a; } return select(b, a, a >= b);",
  helpers: isNan,
  gradient: ({ gradient, inputs: [a, b] }) => chosen(gradient, logicalOr(ge(a!, b!), isnan(b!))),
});
const fminRow = row({
  name: "fmin",
  body: "if (is_nan(f32(a))) { return b; } if (is_nan(f32(b))) { return a; } return select(b, a, a <= b);",
  helpers: isNan,
  gradient: ({ gradient, inputs: [a, b] }) => chosen(gradient, logicalOr(le(a!, b!), isnan(b!))),
});

/** Without overflow on the way. */
const hypotRow = row({
  name: "hypot",
  body: `if ((bitcast<u32>(a) & 0x7fffffffu) == 0x7f800000u) { return abs(a); }
    if ((bitcast<u32>(b) & 0x7fffffffu) == 0x7f800000u) { return abs(b); }
    if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    let high = max(abs(a), abs(b));
    let low = min(abs(a), abs(b));
    if (low == 0.0) { return high; }
    let ratio = low / high;
    return high * sqrt(1.0 + ratio * ratio);`,
  helpers: isNan,
  gradient: ({ gradient, inputs: [a, b], output, needs }) => [
    needs[0] ? mul(gradient, div(a!, output)) : null,
    needs[1] ? mul(gradient, div(b!, output)) : null,
  ],
});

/** Operands: start, end, weight. From the nearer end, so that weights 0 and 1 are exact. */
const lerpRow = row({
  name: "lerp",
  body: "return select(b - (b - a) * (1.0 - c), a + c * (b - a), abs(c) < 0.5);",
  gradient: ({ gradient, inputs: [start, end, weight], needs }) => [
    needs[0] ? mul(gradient, sub(1, weight!)) : null,
    needs[1] ? mul(gradient, weight!) : null,
    needs[2] ? mul(gradient, sub(end!, start!)) : null,
  ],
});

export const special: readonly Operator[] = [
  isfiniteRow,
  isinfRow,
  logicalXorRow,
  nanToNumRow,
  fmaxRow,
  fminRow,
  hypotRow,
  lerpRow,
];

export const isfinite = unary(isfiniteRow);
export const isinf = unary(isinfRow);
export const logicalXor = (a: Tensor, b: Tensor): Tensor => apply(logicalXorRow, [to(a, "bool"), to(b, "bool")], {});
/** The larger operand; where one is NaN, the other. */
export const fmax = binary(fmaxRow, "int32");
/** The smaller operand; where one is NaN, the other. */
export const fmin = binary(fminRow, "int32");
/** sqrt(a^2 + b^2), without overflow. */
export const hypot = binary(hypotRow, "float32");

const largest = { float32: 3.4028234663852886e38, float16: 65504, bfloat16: 3.3895313892515355e38 } as const;

/** Numbers in place of NaN and infinities; by default 0 and the type's largest. */
export function nanToNum(input: Tensor, nan = 0, posinf: number | null = null, neginf: number | null = null): Tensor {
  const { dtype } = input;
  if (dtype === "int32" || dtype === "bool") return input;
  return apply(nanToNumRow, [input], {}, [nan, posinf ?? largest[dtype], neginf ?? -largest[dtype]]);
}

/** start + weight * (end - start). */
export const lerp = autocasting(
  "lerp",
  (start: Tensor, end: Tensor, weight: Operand): Tensor =>
    apply(lerpRow, [floating(start), floating(end), asTensor(weight, "float32")], {}),
);

/** input + value * tensor1 * tensor2. */
export const addcmul = (input: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor =>
  add(input, mul(tensor1, tensor2), value);

/** input + value * tensor1 / tensor2. */
export const addcdiv = (input: Tensor, tensor1: Tensor, tensor2: Tensor, value = 1): Tensor =>
  add(input, div(tensor1, tensor2), value);

/** `value` (a number or a scalar tensor) where the mask holds. */
export const maskedFill = (input: Tensor, mask: Tensor, value: Operand): Tensor =>
  where(mask, asTensor(value, input.dtype), input);

export const square = (input: Tensor): Tensor => mul(input, input);

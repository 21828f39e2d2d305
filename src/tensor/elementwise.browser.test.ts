import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import * as torch from "./index";
import { type Tensor, tensor } from "./index";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;
const smallestNormal = 2 ** -126;

/** Magnitudes from the smallest to the largest, both signs, and what functions turn at. */
const magnitudes = [
  ...Array.from({ length: 76 }, (_, i) => 10 ** (i - 37)),
  3.4028234663852886e38,
  ...[0.1, 0.25, 0.3, 0.4999, 0.5, 0.7, 0.9, 0.999, 1.001, 1.1, 1.5, 2, 2.5, 3, 3.5, Math.PI, 5, 7.77, 11, 20, 44],
  ...[87, 88.5, 89, 126.5, 128, 150, 500, 1000.5, 8191, 8193, 65535.5, 16777216, 2147483648],
].map(Math.fround);
const points = [0, -0, nan, infinity, -infinity, ...magnitudes, ...magnitudes.map((x) => -x)];

/** The error function to float64's precision: by its series, and by a continued fraction of its complement. */
function erf64(x: number): number {
  const t = Math.abs(x);
  if (t > 6) return Math.sign(x);
  if (Number.isNaN(x)) return nan;
  if (t < 3) {
    let term = x;
    let total = x;
    for (let n = 1; n < 80; n++) {
      term *= -(x * x) / n;
      total += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * total;
  }
  let fraction = t;
  for (let n = 60; n > 0; n--) fraction = t + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-t * t) / (Math.sqrt(Math.PI) * fraction));
}

const roundToEven = (x: number): number => {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
};

interface Formula {
  readonly of: (x: Tensor) => Tensor;
  readonly reference: (x: number) => number;
  /** The relative error that is allowed: 4e-7 is 4 units in the last place. */
  readonly relative: number;
}
const formula = (of: Formula["of"], reference: Formula["reference"], relative = 4e-7): Formula => ({
  of,
  reference,
  relative,
});
/** WGSL's exp is right to 3 + 2|x| units in the last place, which is 180 at the ends of its range. */
const asExp = 2.2e-5;

const unary: Record<string, Formula> = {
  abs: formula(torch.abs, Math.abs, 0),
  acos: formula(torch.acos, Math.acos),
  asin: formula(torch.asin, Math.asin),
  atan: formula(torch.atan, Math.atan),
  ceil: formula(torch.ceil, Math.ceil, 0),
  cos: formula(torch.cos, Math.cos, 1e-6),
  cosh: formula(torch.cosh, Math.cosh, asExp),
  erf: formula(torch.erf, erf64, 1e-6),
  exp: formula(torch.exp, Math.exp, asExp),
  exp2: formula(torch.exp2, (x) => 2 ** x, asExp),
  expm1: formula(torch.expm1, Math.expm1, asExp),
  floor: formula(torch.floor, Math.floor, 0),
  frac: formula(torch.frac, (x) => x - Math.trunc(x), 0),
  isfinite: formula(torch.isfinite, (x) => Number(Number.isFinite(x)), 0),
  isinf: formula(torch.isinf, (x) => Number(Math.abs(x) === infinity), 0),
  isnan: formula(torch.isnan, (x) => Number(Number.isNaN(x)), 0),
  log: formula(torch.log, Math.log),
  log10: formula(torch.log10, Math.log10),
  log1p: formula(torch.log1p, Math.log1p),
  log2: formula(torch.log2, Math.log2),
  neg: formula(torch.neg, (x) => -x, 0),
  reciprocal: formula(torch.reciprocal, (x) => 1 / x),
  round: formula((x) => torch.round(x), roundToEven, 0),
  rsqrt: formula(torch.rsqrt, (x) => 1 / Math.sqrt(x)),
  sigmoid: formula(torch.sigmoid, (x) => 1 / (1 + Math.exp(-x)), asExp),
  sin: formula(torch.sin, Math.sin, 1e-6),
  sinh: formula(torch.sinh, Math.sinh, asExp),
  sqrt: formula(torch.sqrt, Math.sqrt),
  square: formula(torch.square, (x) => x * x),
  tan: formula(torch.tan, Math.tan, 2e-6),
  tanh: formula(torch.tanh, Math.tanh, 1e-6),
  trunc: formula(torch.trunc, Math.trunc, 0),
  relu: formula(torch.relu, (x) => (x > 0 ? x : Number.isNaN(x) ? x : 0), 0),
  nanToNum: formula(
    torch.nanToNum,
    (x) => (Number.isNaN(x) ? 0 : Math.min(Math.max(x, -3.4028234663852886e38), 3.4028234663852886e38)),
    0,
  ),
  powerOf7: formula(
    (x) => torch.pow(x, 7),
    (x) => x ** 7,
    1e-6,
  ),
  powerOfMinus2: formula(
    (x) => torch.pow(x, -2),
    (x) => x ** -2,
    1e-6,
  ),
  powerOf2AndAHalf: formula(
    (x) => torch.pow(x, 2.5),
    (x) => x ** 2.5,
    1e-6,
  ),
  exponent: formula(
    (x) => torch.pow(1.001, x),
    (x) => Math.fround(1.001) ** x,
    1e-6,
  ),
};

/** What is wrong with a value, or null. Numbers too small to be normal may be taken for 0. */
function problem(got: number, exact: number, relative: number): string | null {
  const want = Math.fround(exact);
  if (Object.is(got, want) || got === want) return null;
  if (Math.abs(got) <= smallestNormal && Math.abs(want) <= smallestNormal) return null;
  // The largest finite number and infinity are neighbours.
  if (Math.abs(exact) > 3.4e38 && got === Math.sign(exact) * infinity) return null;
  if (Math.abs(got - exact) <= relative * Math.abs(exact)) return null;
  return `${got} is not ${want}`;
}

test("functions of one number agree with float64 at every magnitude, at zeros, infinities and NaN", async () => {
  const x = tensor(points);
  const results = await Promise.all(
    Object.values(unary)
      .map(({ of }) => of(x))
      .map((result) => result.data()),
  );
  const problems = Object.entries(unary).flatMap(([name, { reference, relative }], f) =>
    points.flatMap(
      (point, i) => problem(results[f]![i]!, reference(point), relative)?.replace(/^/, `${name}(${point}): `) ?? [],
    ),
  );
  expect(problems).toEqual([]);
});

const operands = [0, -0, nan, infinity, -infinity, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -7.25, 10, 1e-30, -1e-20, 1e-6]
  .concat([0.999, 1.0001, 123.456, -1e5, 8388609, 1e10, -1e20, 3e30, 1e38])
  .map(Math.fround);

const fmod64 = (a: number, b: number): number => a % b;
const remainder64 = (a: number, b: number): number => {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
};
/** PyTorch's: the quotient of the exact values, rounded down. */
const floorDivide64 = (a: number, b: number): number => {
  if (b === 0 || !Number.isFinite(a)) return b === 0 ? a / b : a * (b > 0 ? 1 : -1) * (Number.isFinite(b) ? 1 : nan);
  if (!Number.isFinite(b)) return Number.isNaN(b) ? nan : a !== 0 && a < 0 !== b < 0 ? -1 : 0;
  return Math.floor((a - remainder64(a, b)) / b + 0.5);
};
const power64 = (a: number, b: number): number => (a === 1 || (a === -1 && Math.abs(b) === infinity) ? 1 : a ** b);

interface Binary {
  readonly of: (a: Tensor, b: Tensor) => Tensor;
  readonly reference: (a: number, b: number) => number;
  readonly relative: number;
}
const pair = (of: Binary["of"], reference: Binary["reference"], relative = 4e-7): Binary => ({
  of,
  reference,
  relative,
});
const passingNan = (of: (a: number, b: number) => number) => (a: number, b: number) =>
  Number.isNaN(a) || Number.isNaN(b) ? nan : of(a, b);
const overNan = (of: (a: number, b: number) => number) => (a: number, b: number) =>
  Number.isNaN(a) ? b : Number.isNaN(b) ? a : of(a, b);

const binary: Record<string, Binary> = {
  add: pair(torch.add, (a, b) => a + b),
  sub: pair(torch.sub, (a, b) => a - b),
  mul: pair(torch.mul, (a, b) => a * b),
  div: pair(torch.div, (a, b) => a / b),
  atan2: pair(torch.atan2, Math.atan2, 1e-6),
  pow: pair(torch.pow, power64, 1e-6),
  fmod: pair(torch.fmod, fmod64, 0),
  remainder: pair(torch.remainder, remainder64, 2e-7),
  maximum: pair(torch.maximum, passingNan(Math.max), 0),
  minimum: pair(torch.minimum, passingNan(Math.min), 0),
  fmax: pair(torch.fmax, overNan(Math.max), 0),
  fmin: pair(torch.fmin, overNan(Math.min), 0),
  hypot: pair(torch.hypot, Math.hypot, 1e-6),
  xlogy: pair(torch.xlogy, (a, b) => (Number.isNaN(b) ? nan : a === 0 ? 0 : a * Math.log(b))),
  logaddexp: pair(
    torch.logaddexp,
    (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)))),
    2e-6,
  ),
  eq: pair(torch.eq, (a, b) => Number(a === b), 0),
  ne: pair(torch.ne, (a, b) => Number(a !== b), 0),
  lt: pair(torch.lt, (a, b) => Number(a < b), 0),
  le: pair(torch.le, (a, b) => Number(a <= b), 0),
  gt: pair(torch.gt, (a, b) => Number(a > b), 0),
  ge: pair(torch.ge, (a, b) => Number(a >= b), 0),
};

test("functions of two numbers agree with float64 for every pair of magnitudes, zeros, infinities and NaN", async () => {
  const n = operands.length;
  const [a, b] = [tensor(operands).reshape(n, 1), tensor(operands)];
  const results = await Promise.all(
    Object.values(binary)
      .map(({ of }) => of(a, b))
      .map((result) => result.data()),
  );
  const problems = Object.entries(binary).flatMap(([name, { reference, relative }], f) =>
    operands.flatMap((left, i) =>
      operands.flatMap(
        (right, j) =>
          problem(results[f]![i * n + j]!, reference(left, right), relative)?.replace(
            /^/,
            `${name}(${left}, ${right}): `,
          ) ?? [],
      ),
    ),
  );
  expect(problems).toEqual([]);
});

test("quotients rounded down are those of the exact values", async () => {
  const finite = operands.filter((x) => Number.isFinite(x) && x !== 0);
  const [a, b] = [tensor(finite).reshape(finite.length, 1), tensor(finite)];
  const values = await torch.div(a, b, "floor").data();
  const problems = finite.flatMap((left, i) =>
    finite.flatMap(
      (right, j) =>
        problem(values[i * finite.length + j]!, floorDivide64(left, right), 2e-7)?.replace(
          /^/,
          `${left} // ${right}: `,
        ) ?? [],
    ),
  );
  expect(problems).toEqual([]);
  // 0.1 in float32 is above a tenth.
  expect(await torch.floorDivide(tensor([1]), 0.1).array()).toEqual([9]);
});

test("integers stay exact integers", async () => {
  const a = tensor(new Int32Array([7, -7, 2147483647, -2147483648, 16777217]));
  const b = tensor(new Int32Array([3, 3, -2, 5, 1]));
  const results = {
    add: torch.add(a, 1),
    mul: torch.mul(a, 3),
    pow: torch.pow(tensor(new Int32Array([3, -3, 2, -1, 7])), tensor(new Int32Array([5, 3, 30, -3, -1]))),
    fmod: torch.fmod(a, b),
    remainder: torch.remainder(a, b),
    floor: torch.div(a, b, "floor"),
    trunc: torch.div(a, b, "trunc"),
    maximum: torch.maximum(a, 16777216),
    abs: torch.abs(a),
  };
  for (const result of Object.values(results)) expect(result.dtype).toBe("int32");
  const values = await Promise.all(Object.values(results).map((result) => result.array()));
  expect(Object.fromEntries(Object.keys(results).map((name, i) => [name, values[i]]))).toEqual({
    add: [8, -6, -2147483648, -2147483647, 16777218],
    mul: [21, -21, 2147483645, -2147483648, 50331651],
    pow: [243, -27, 1073741824, -1, 0],
    fmod: [1, -1, 1, -3, 0],
    remainder: [1, 2, -1, 2, 0],
    floor: [2, -3, -1073741824, -429496730, 16777217],
    trunc: [2, -2, -1073741823, -429496729, 16777217],
    maximum: [16777216, 16777216, 2147483647, 16777216, 16777217],
    abs: [7, 7, 2147483647, -2147483648, 16777217],
  });
});

test("(-3)^2 is 9 with gradient -6, whether the exponent is a number or a tensor", async () => {
  const x = tensor([-3, -3], { requiresGrad: true });
  const y = torch.pow(x, tensor([2, 3]));
  torch.sum(y).backward();
  const [values, slopes] = await Promise.all([y.array(), x.grad!.array()]);
  expect(values).toEqual([9, -27]);
  expect(slopes).toEqual([-6, 27]);
});

test("slopes at the ends of functions are PyTorch's", async () => {
  const slopeOf = (f: (x: Tensor) => Tensor, at: number[]) => {
    const x = tensor(at, { requiresGrad: true });
    torch.sum(f(x)).backward();
    return x.grad!.array();
  };
  const [abs, norm, std, prod, xlogy, tanh] = await Promise.all([
    slopeOf(torch.abs, [-2, 0, 2]),
    slopeOf((x) => torch.vectorNorm(x), [0, 0]),
    slopeOf((x) => torch.std(x), [3, 3, 3]),
    slopeOf((x) => torch.prod(x), [0, 2, 3]),
    slopeOf((x) => torch.xlogy(x, tensor([0, 1])), [0, 2]),
    slopeOf(torch.tanh, [44, -1000]),
  ]);
  expect({ abs, norm, std, prod, xlogy, tanh }).toEqual({
    abs: [-1, 0, 1],
    norm: [0, 0],
    std: [0, 0, 0],
    prod: [6, 0, 0],
    xlogy: [0, 0],
    tanh: [0, 0],
  });
});

test("views by any strides and sizes that are prime give what contiguous tensors give", async () => {
  const shape = [7, 11, 13] as const;
  const whole = tensor(
    Float32Array.from({ length: 1001 }, (_, i) => ((i * 37) % 101) - 50),
    { shape },
  );
  const views = {
    transposed: whole.transpose(0, 2),
    offset: whole.narrow(2, 5, 7).narrow(0, 1, 5),
    stepped: torch.index(whole, torch.slice(1, null, 2), "...", torch.slice(null, null, 3)),
    diagonal: torch.diagonal(whole, -1, 1, 2),
    broadcast: whole.select(1, 4).unsqueeze(1).expand(7, 3, 13),
  };
  const operations = [
    (x: Tensor) => torch.sinh(torch.div(x, 20)),
    (x: Tensor) => torch.cumsum(x, 0),
    (x: Tensor) => torch.sort(x, 0).values,
    (x: Tensor) => torch.flip(x, [0, -1]),
    (x: Tensor) => torch.prod(torch.div(x, 50), -1),
    (x: Tensor) => torch.fmod(x, 7),
  ];
  const compared = Object.values(views).flatMap((view) => {
    const copied = view.contiguous().mul(1).keep();
    return operations.flatMap((operation) => [operation(view), operation(copied)]);
  });
  const values = await Promise.all(compared.map((result) => result.data()));
  for (let i = 0; i < values.length; i += 2) expect([i, values[i]]).toEqual([i, values[i + 1]]);
});

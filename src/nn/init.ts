/**
 * Initial weights, as torch.nn.init. They are drawn on the CPU from integers and IEEE's basic operations alone, so that
 * the same seed gives the same weights in every browser (which differ in the last bits of Math.log and its kin). Each
 * function overwrites a tensor and returns it.
 */
import { nextRandomStream, type Tensor } from "../tensor/index";

/** Uniform numbers in [low, high). */
export function uniform_(tensor: Tensor, low = 0, high = 1): Tensor {
  const stream = nextRandomStream();
  return fill(tensor, (index) => low + (high - low) * stream.uniform(index));
}

/** Normal numbers, by Marsaglia's polar method. */
export function normal_(tensor: Tensor, mean = 0, deviation = 1): Tensor {
  const draw = normals();
  return fill(tensor, () => mean + deviation * draw());
}

/** Normal numbers, drawn anew where they lie outside of [low, high]. */
export function truncNormal_(tensor: Tensor, mean = 0, deviation = 1, low = -2, high = 2): Tensor {
  if (!(low < high && low < mean + 4 * deviation && high > mean - 4 * deviation))
    throw new Error(
      `Normal numbers of mean ${mean} and deviation ${deviation} hardly fall between ${low} and ${high}; expected bounds within four deviations.`,
    );
  const draw = normals();
  return fill(tensor, () => {
    for (;;) {
      const value = mean + deviation * draw();
      if (value >= low && value <= high) return value;
    }
  });
}

/** Draws normal numbers of mean 0 and deviation 1 from the next stream. */
function normals(): () => number {
  const stream = nextRandomStream();
  let drawn = 0;
  let spare: number | null = null;
  return () => {
    if (spare !== null) {
      const value = spare;
      spare = null;
      return value;
    }
    for (;;) {
      const x = 2 * stream.uniform(drawn++) - 1;
      const y = 2 * stream.uniform(drawn++) - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const factor = Math.sqrt((-2 * logarithm(square)) / square);
      spare = y * factor;
      return x * factor;
    }
  };
}

/** The identity matrix, with zeros where the matrix isn't square. */
export function eye_(tensor: Tensor): Tensor {
  const [rows, columns] = tensor.shape;
  if (tensor.ndim !== 2 || rows === undefined || columns === undefined)
    throw new Error(`A tensor of shape [${tensor.shape.join(", ")}] is no matrix; expected two dimensions.`);
  return fill(tensor, (index) => (Math.floor(index / columns) === index % columns ? 1 : 0));
}

/**
 * A random matrix whose rows, or columns where there are fewer of them, are orthogonal and have the length `gain` (Saxe et
 * al. 2014); of [out, ...] the other dimensions are joined.
 */
export function orthogonal_(tensor: Tensor, gain = 1): Tensor {
  const [rows = 0, ...rest] = tensor.shape;
  const columns = rest.reduce((product, size) => product * size, 1);
  if (tensor.ndim < 2)
    throw new Error(`A tensor of shape [${tensor.shape.join(", ")}] is no matrix; expected two or more dimensions.`);
  const [count, length] = rows <= columns ? [rows, columns] : [columns, rows];
  const draw = normals();
  const basis: Float64Array[] = [];
  while (basis.length < count) {
    const vector = Float64Array.from({ length }, draw);
    // Twice, since the first time leaves what rounding makes of nearly parallel vectors.
    for (let pass = 0; pass < 2; pass++)
      for (const other of basis) {
        const along = inner(vector, other);
        for (let i = 0; i < length; i++) vector[i]! -= along * other[i]!;
      }
    const size = Math.sqrt(inner(vector, vector));
    if (size < 1e-6) continue;
    basis.push(vector.map((value) => value / size));
  }
  return fill(tensor, (index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    return gain * (rows <= columns ? basis[row]![column]! : basis[column]![row]!);
  });
}

const inner = (a: Float64Array, b: Float64Array): number => {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i]! * b[i]!;
  return total;
};

export function constant_(tensor: Tensor, value: number): Tensor {
  return fill(tensor, () => value);
}

export const zeros_ = (tensor: Tensor): Tensor => constant_(tensor, 0);
export const ones_ = (tensor: Tensor): Tensor => constant_(tensor, 1);

export type Nonlinearity = "linear" | "conv" | "sigmoid" | "tanh" | "relu" | "leakyRelu" | "selu";

/** The factor by which a nonlinearity's input should be larger; `slope` is leaky ReLU's. */
export function calculateGain(nonlinearity: Nonlinearity, slope = 0.01): number {
  switch (nonlinearity) {
    case "linear":
    case "conv":
    case "sigmoid":
      return 1;
    case "tanh":
      return 5 / 3;
    case "relu":
      return Math.sqrt(2);
    case "leakyRelu":
      return Math.sqrt(2 / (1 + slope * slope));
    case "selu":
      return 3 / 4;
  }
}

export interface KaimingOptions {
  /** The negative slope where the nonlinearity is leaky ReLU. Default: 0. */
  readonly a?: number;
  /** Which variance is kept: that of the forward or of the backward pass. Default: "fanIn". */
  readonly mode?: "fanIn" | "fanOut";
  /** Default: "leakyRelu". */
  readonly nonlinearity?: Nonlinearity;
}

/** Uniform numbers of variance gain² / fan (He et al. 2015). */
export function kaimingUniform_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingDeviation(tensor, options);
  return uniform_(tensor, -bound, bound);
}

/** Normal numbers of variance gain² / fan (He et al. 2015). */
export function kaimingNormal_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  return normal_(tensor, 0, kaimingDeviation(tensor, options));
}

function kaimingDeviation(
  tensor: Tensor,
  { a = 0, mode = "fanIn", nonlinearity = "leakyRelu" }: KaimingOptions,
): number {
  return calculateGain(nonlinearity, a) / Math.sqrt(calculateFan(tensor)[mode]);
}

/** Uniform numbers of variance 2 gain² / (fanIn + fanOut) (Glorot and Bengio 2010). */
export function xavierUniform_(tensor: Tensor, gain = 1): Tensor {
  const { fanIn, fanOut } = calculateFan(tensor);
  const bound = gain * Math.sqrt(6 / (fanIn + fanOut));
  return uniform_(tensor, -bound, bound);
}

/** Normal numbers of variance 2 gain² / (fanIn + fanOut) (Glorot and Bengio 2010). */
export function xavierNormal_(tensor: Tensor, gain = 1): Tensor {
  const { fanIn, fanOut } = calculateFan(tensor);
  return normal_(tensor, 0, gain * Math.sqrt(2 / (fanIn + fanOut)));
}

/** How many inputs an output of a weight [out, in, ...window] has, and how many outputs an input. */
export function calculateFan({ shape }: Tensor): { readonly fanIn: number; readonly fanOut: number } {
  const [outputs, inputs, ...window] = shape;
  if (outputs === undefined || inputs === undefined)
    throw new Error(
      `A tensor of shape [${shape.join(", ")}] has no fan-in and fan-out; expected a weight of two or more dimensions.`,
    );
  const area = window.reduce((product, size) => product * size, 1);
  return { fanIn: inputs * area, fanOut: outputs * area };
}

function fill(tensor: Tensor, value: (index: number) => number): Tensor {
  tensor.write(Float32Array.from({ length: tensor.numel }, (_, index) => value(index)));
  return tensor;
}

/** The natural logarithm of a positive number, with the same bits on every engine. */
function logarithm(x: number): number {
  let exponent = 0;
  let mantissa = x;
  for (; mantissa < Math.SQRT1_2; mantissa *= 2) exponent -= 1;
  for (; mantissa > Math.SQRT2; mantissa /= 2) exponent += 1;
  // log m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172: 12 terms reach 2^-53.
  const ratio = (mantissa - 1) / (mantissa + 1);
  const square = ratio * ratio;
  let series = 0;
  for (let term = 25; term >= 1; term -= 2) series = series * square + 1 / term;
  return exponent * Math.LN2 + 2 * ratio * series;
}

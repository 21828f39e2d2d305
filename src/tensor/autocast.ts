import { areGradientsEnabled, currentRecording, versionOf } from "./apply";
import { policyOf } from "./autocastPolicy";
import { type DType, isFloating, isNarrow, type NarrowType } from "./dtype";
import { to } from "./operators/elementwise";
import type { Recording } from "./recording";
import { OperatorError } from "./shape";
import { Tensor } from "./tensor";

export interface AutocastOptions {
  /** What operators on the list for lower precision compute with. Default: float16. */
  readonly dtype?: NarrowType;
  /** Default: true. False: within another region, operators run in their inputs' types again. */
  readonly enabled?: boolean;
  /** Whether a parameter is cast once for the whole region, not at each use. Default: true. */
  readonly cacheEnabled?: boolean;
}

/** A region of mixed precision; null: operators run in their inputs' types. */
export type Region = {
  readonly dtype: NarrowType;
  /** What parameters were cast to, while nothing was flushed and the parameters are what they were. */
  readonly casts: Map<Tensor, Cast> | null;
} | null;

interface Cast {
  readonly tensor: Tensor;
  readonly recording: Recording;
  readonly version: number;
}

let region: Region = null;

export const currentRegion = (): Region => region;

/** The same region before anything was cast in it. */
export const emptied = (of: Region): Region => of && { dtype: of.dtype, casts: of.casts && new Map() };

/** Runs `body` in a region, or outside of any. */
export function withRegion<T>(other: Region, body: () => T): T {
  const before = region;
  region = other;
  try {
    return body();
  } finally {
    region = before;
  }
}

/**
 * Mixed precision, as torch.autocast: within `body`, each operator runs in the type that suits it (see
 * `autocastPolicy.ts`). Matrix products, convolutions and attention take `dtype`; exponentials, sums, norms, softmax and
 * losses take float32; all others take their inputs as they are. Parameters stay float32, and so do their gradients:
 * the backward pass runs in the types of the forward one, wherever `backward()` is called.
 *
 *     const loss = autocast({ dtype: "bfloat16" }, () => crossEntropy(model.forward(x), y));
 *     loss.backward();
 *
 * Regions nest; the innermost counts. float16 has small gradients round to zero: use an `optim.GradScaler` with it.
 * @throws Error where `body` is asynchronous.
 */
export function autocast<T>(options: AutocastOptions, body: () => T): T {
  const { dtype = "float16", enabled = true, cacheEnabled = true } = options;
  if (!isNarrow(dtype)) throw new OperatorError("autocast", `dtype is ${dtype}; expected float16 or bfloat16`);
  const casts = cacheEnabled ? (region?.dtype === dtype && region.casts) || new Map<Tensor, Cast>() : null;
  const result = withRegion(enabled ? { dtype, casts } : null, body);
  if (result instanceof Promise)
    throw new Error("autocast: the function is asynchronous; expected one that ends before it returns.");
  return result;
}

/** Whether operators run in a region of mixed precision. */
export const isAutocastEnabled = (): boolean => region !== null;

/** A tensor in a type; a parameter's cast is kept for the next use in the region. */
function cast(input: Tensor, dtype: DType, { casts }: NonNullable<Region>): Tensor {
  if (!isFloating(input.dtype) || input.dtype === dtype) return input;
  if (!casts || !input.isLeaf || !input.requiresGrad || !areGradientsEnabled() || !isNarrow(dtype))
    return to(input, dtype);
  const recording = currentRecording();
  const version = versionOf(input);
  const known = casts.get(input);
  if (known && known.recording === recording && known.version === version) return known.tensor;
  const tensor = to(input, dtype);
  casts.set(input, { tensor, recording, version });
  return tensor;
}

/** An operator's inputs in the types that its policy asks for. */
export function autocastInputs(operator: string, inputs: readonly Tensor[]): readonly Tensor[] {
  return region ? inputs.map(castFor(operator, region)) : inputs;
}

/** What becomes of an operator's inputs within a region. */
function castFor(operator: string, within: NonNullable<Region>): (input: Tensor) => Tensor {
  switch (policyOf(operator)) {
    case "lower":
      return (input) => cast(input, within.dtype, within);
    case "float32":
      return (input) => cast(input, "float32", within);
    case "wide":
    case null:
      return (input) => input;
  }
}

/**
 * A function made of several operators that PyTorch has as one, with that one's policy: what it is made of has none.
 * Outside of regions, functions that regions run in float32 compute so too, and round their result once.
 */
export function autocasting<F extends (...operands: never[]) => unknown>(name: string, f: F): F;
export function autocasting(name: string, f: (...operands: unknown[]) => unknown): (...operands: unknown[]) => unknown {
  return (...operands) => {
    const policy = policyOf(name);
    if (region && policy !== "wide") {
      const inputs = mapTensors(operands, castFor(name, region));
      return withRegion(null, () => f(...inputs));
    }
    const [first, ...rest] = operands;
    if (policy === "lower" || !(first instanceof Tensor) || !isNarrow(first.dtype)) return f(...operands);
    const widen = (input: Tensor) => (isNarrow(input.dtype) ? to(input, "float32") : input);
    // What else takes part in a wide function may be changed in place.
    const others = policy === "wide" ? rest : mapTensors(rest, widen);
    const result = withRegion(null, () => f(widen(first), ...others));
    return withTensors(result, (output) => (output.dtype === "float32" ? to(output, first.dtype) : output));
  };
}

const mapTensors = (values: readonly unknown[], replace: (input: Tensor) => Tensor): unknown[] =>
  values.map((value) => withTensors(value, replace));

/** A value with its tensors replaced: itself, those of a list, or those of an object of options or results. */
function withTensors(value: unknown, replace: (input: Tensor) => Tensor): unknown {
  if (value instanceof Tensor) return replace(value);
  if (Array.isArray(value)) return mapTensors(value, replace);
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withTensors(entry, replace)]));
}

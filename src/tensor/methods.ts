import * as functions from "./functions";
import type { Sorted } from "./operators/sorting";
import { Tensor } from "./tensor";

/** Functions that are methods too, as in PyTorch: the tensor is their first argument. */
const names = [
  "acos",
  "addbmm",
  "addcdiv",
  "addcmul",
  "addmm",
  "addmv",
  "all",
  "any",
  "argsort",
  "asin",
  "atan",
  "atan2",
  "baddbmm",
  "bmm",
  "broadcastTo",
  "ceil",
  "chunk",
  "cos",
  "cosh",
  "countNonzero",
  "cumprod",
  "cumsum",
  "diag",
  "diagonal",
  "dot",
  "erf",
  "exp2",
  "expm1",
  "flip",
  "floor",
  "floorDivide",
  "fmax",
  "fmin",
  "fmod",
  "frac",
  "gather",
  "hypot",
  "index",
  "indexAdd",
  "indexAsync",
  "indexSelect",
  "inner",
  "isfinite",
  "isinf",
  "isnan",
  "kthvalue",
  "lerp",
  "log10",
  "log1p",
  "log2",
  "logaddexp",
  "logicalAnd",
  "logicalNot",
  "logicalOr",
  "logicalXor",
  "maskedFill",
  "maskedSelect",
  "mm",
  "movedim",
  "msort",
  "mv",
  "nanToNum",
  "nansum",
  "nonzero",
  "norm",
  "outer",
  "prod",
  "reciprocal",
  "remainder",
  "repeat",
  "roll",
  "round",
  "rsqrt",
  "scatter",
  "scatterAdd",
  "sign",
  "sin",
  "sinh",
  "sort",
  "split",
  "square",
  "std",
  "takeAlongDim",
  "tan",
  "tile",
  "topk",
  "tril",
  "triu",
  "trunc",
  "unbind",
  "unflatten",
  "uniqueConsecutive",
  "xlogy",
] as const;
/** Those whose signatures are several, which are declared one by one. */
const overloaded = ["max", "median", "min", "repeatInterleave"] as const;

type Method<Function> = Function extends (input: Tensor, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never;
type Methods = { readonly [Name in (typeof names)[number]]: Method<(typeof functions)[Name]> };

declare module "./tensor" {
  interface Tensor extends Methods {
    max(): Tensor;
    max(dim: number, keepdim?: boolean): Sorted;
    max(other: Tensor): Tensor;
    median(): Tensor;
    median(dim: number, keepdim?: boolean): Sorted;
    min(): Tensor;
    min(dim: number, keepdim?: boolean): Sorted;
    min(other: Tensor): Tensor;
    repeatInterleave(repeats: number, dim?: number | null): Tensor;
    repeatInterleave(repeats: Tensor, dim?: number | null): Promise<Tensor>;
  }
}

for (const name of [...names, ...overloaded])
  Object.defineProperty(Tensor.prototype, name, {
    configurable: true,
    writable: true,
    value(this: Tensor, ...rest: readonly unknown[]): unknown {
      // biome-ignore lint/performance/noDynamicNamespaceImportAccess: tensors have all of these, so none can be left out.
      return Reflect.apply(functions[name], undefined, [this, ...rest]);
    },
  });

/** How values of several ranks become one, as torch.distributed.ReduceOp. */
export type ReduceOp = "sum" | "avg" | "prod" | "min" | "max" | "band" | "bor" | "bxor";

/** Arrays in which values are combined. */
export type PartialArray =
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;

/** Combines `values` into `into`, element by element. */
export type Combine = (into: PartialArray, values: PartialArray) => void;

/** What kind of numbers a type holds. */
export type NumberKind = "float" | "integer" | "boolean";

interface ReduceRow {
  readonly kinds: readonly NumberKind[];
  readonly combine: Readonly<Partial<Record<NumberKind, Combine>>>;
}

function each(combine: (a: number, b: number) => number): Combine {
  return (into, values) => {
    for (let index = 0; index < into.length; index += 1) into[index] = combine(into[index]!, values[index]!);
  };
}

const addAny = each((a, b) => a + b);

/** The loop that gradients run through; float32 has it alone, so that it stays fast. */
function addFloats(into: Float32Array, values: Float32Array): void {
  for (let index = 0; index < into.length; index += 1) into[index] = into[index]! + values[index]!;
}

const add: Combine = (into, values) => {
  if (into instanceof Float32Array && values instanceof Float32Array) addFloats(into, values);
  else addAny(into, values);
};

function row(combine: Readonly<Partial<Record<NumberKind, Combine>>>): ReduceRow {
  const kinds: readonly NumberKind[] = ["float", "integer", "boolean"];
  return { kinds: kinds.filter((kind) => combine[kind] !== undefined), combine };
}

const minimum = each(Math.min);
const maximum = each(Math.max);
const and = each((a, b) => a & b);
const or = each((a, b) => a | b);
const xor = each((a, b) => a ^ b);

/** Integers wrap around, as in PyTorch; minimum and maximum of a NaN is NaN. */
const reduceTable: Readonly<Record<ReduceOp, ReduceRow>> = {
  sum: row({ float: add, integer: add }),
  // The mean of integers is seldom one, so it isn't defined for them.
  avg: row({ float: add }),
  prod: row({ float: each((a, b) => a * b), integer: each(Math.imul) }),
  min: row({ float: minimum, integer: minimum, boolean: minimum }),
  max: row({ float: maximum, integer: maximum, boolean: maximum }),
  band: row({ integer: and, boolean: and }),
  bor: row({ integer: or, boolean: or }),
  bxor: row({ integer: xor, boolean: xor }),
};

export const reduceOps: readonly ReduceOp[] = ["sum", "avg", "prod", "min", "max", "band", "bor", "bxor"];

/** @returns the loop, or null where the operation isn't defined for such numbers. */
export function combineFor(op: ReduceOp, kind: NumberKind): Combine | null {
  return reduceTable[op].combine[kind] ?? null;
}

/** The kinds of numbers that `op` takes. */
export function kindsOf(op: ReduceOp): readonly NumberKind[] {
  return reduceTable[op].kinds;
}

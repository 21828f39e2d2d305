import sparseMapCode from "../../../shaders/sparseMap.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { sizeOf } from "../shape";
import { type Tensor, tensor } from "../tensor";
import type { Operator } from "./table";

/*
 * Linear maps along one dimension of which each output sees few inputs: padding, interpolation, adaptive pooling,
 * sliding windows. They differ in a table that is computed on the CPU, once for each size; the transposed table carries
 * gradients, without atomics.
 */

/** One input of an output, with its weight. */
export interface Tap {
  readonly input: number;
  readonly weight: number;
}

type SparseMapAttributes = { readonly dim: number; readonly inputs: number; readonly outputs: number };

const shader: Shader = { name: "sparseMap", code: sparseMapCode, bindings: ["read", "read", "write"] };

/** Inputs: input, the table, the transposed table. */
const sparseMapRow: Operator<SparseMapAttributes> = {
  name: "sparseMap",
  infer: ([input], { dim, outputs }) => ({ shape: input!.shape.with(dim, outputs), dtype: "float32" }),
  lower(lowering, { inputs: [input, table], attributes: { dim, inputs, outputs }, shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    const taps = (sizeOf(table!.shape) - outputs - 1) / 2;
    lowering.dispatch({
      shader,
      bindings: [lowering.dense(input!), lowering.dense(table!), output],
      uniforms: [count, sizeOf(shape.slice(dim + 1)), outputs, inputs, taps],
      grid: spread(Math.ceil(count / 64)),
      work: count * (2 + (3 * taps) / outputs),
    });
    return output;
  },
  backward: ({ inputs: [, table, transposed], gradient, attributes: { dim, inputs, outputs } }) => [
    apply(sparseMapRow, [gradient, transposed!, table!], { dim, inputs: outputs, outputs: inputs }),
    null,
    null,
  ],
};

export const sparseMaps: readonly Operator[] = [sparseMapRow];

interface Tables {
  readonly outputs: number;
  readonly forward: Tensor;
  readonly transposed: Tensor;
}

/** Tables by what they are for, least recently used first. */
const cache = new Map<string, Tables>();
const tablesKept = 64;

/** Lets all tables be made anew: they lie on a device that is gone. */
export const forgetTables = (): void => cache.clear();

/**
 * Applies a map along a dimension.
 * @param input floats; `dim` counted from the front.
 * @param key tells the map from all others, but for the size of the input's dimension.
 * @param tapsOf the taps of each output, for so many inputs.
 */
export function sparseMap(input: Tensor, dim: number, key: string, tapsOf: (inputs: number) => Tap[][]): Tensor {
  const inputs = input.shape[dim]!;
  const { outputs, forward, transposed } = tablesOf(`${key} of ${inputs}`, inputs, tapsOf);
  return apply(sparseMapRow, [input, forward, transposed], { dim, inputs, outputs });
}

function tablesOf(key: string, inputs: number, tapsOf: (inputs: number) => Tap[][]): Tables {
  let tables = cache.get(key);
  if (tables) cache.delete(key);
  else {
    const rows = tapsOf(inputs);
    const columns = Array.from({ length: inputs }, (): Tap[] => []);
    for (const [output, taps] of rows.entries())
      for (const { input, weight } of taps) columns[input]!.push({ input: output, weight });
    tables = { outputs: rows.length, forward: tableOf(rows), transposed: tableOf(columns) };
  }
  cache.set(key, tables);
  if (cache.size > tablesKept) cache.delete(cache.keys().next().value!);
  return tables;
}

function tableOf(rows: readonly (readonly Tap[])[]): Tensor {
  const taps = rows.flat();
  const words = new Int32Array(rows.length + 1 + 2 * taps.length);
  let at = 0;
  for (const [row, { length }] of rows.entries()) {
    at += length;
    words[row + 1] = at;
  }
  words.set(
    taps.map(({ input }) => input),
    rows.length + 1,
  );
  const weights = Float32Array.from(taps, ({ weight }) => weight);
  words.set(new Int32Array(weights.buffer), rows.length + 1 + taps.length);
  return tensor(words);
}

import { adaptivePooling } from "./adaptivePooling";
import { convolution } from "./convolution";
import { creation } from "./creation";
import { crossEntropy } from "./crossEntropy";
import { cumulative } from "./cumulative";
import { elementwise } from "./elementwise";
import { embeddings } from "./embedding";
import { exponential } from "./exponential";
import { fusedAttentions } from "./fusedAttention";
import { indexing } from "./indexing";
import { inPlace } from "./inPlace";
import { layerNorms } from "./layerNorm";
import { losses } from "./losses";
import { matrix } from "./matrix";
import { normalization } from "./normalization";
import { pooling } from "./pooling";
import { rearranging } from "./rearranging";
import { reduction } from "./reduction";
import { rounding } from "./rounding";
import { softmax } from "./softmax";
import { sorting } from "./sorting";
import { sparseMaps } from "./sparseMap";
import { special } from "./special";
import { statistics } from "./statistics";
import type { Operator } from "./table";
import { trigonometric } from "./trigonometric";
import { update } from "./update";
import { views } from "./views";

let byName: ReadonlyMap<string, Operator> | null = null;

/** The row of a recorded node's op. */
export function operatorNamed(name: string): Operator {
  byName ??= new Map(
    [
      creation,
      views,
      rearranging,
      elementwise,
      trigonometric,
      exponential,
      rounding,
      special,
      reduction,
      statistics,
      indexing,
      sorting,
      cumulative,
      matrix,
      softmax,
      crossEntropy,
      inPlace,
      convolution,
      pooling,
      normalization,
      layerNorms,
      update,
      losses,
      fusedAttentions,
      embeddings,
      sparseMaps,
      adaptivePooling,
    ].flatMap((rows) => rows.map((row): [string, Operator] => [row.name, row])),
  );
  const operator = byName.get(name);
  if (!operator) throw new Error(`There is no operator named ${name}; the graph is not from this version of Ringlet.`);
  return operator;
}

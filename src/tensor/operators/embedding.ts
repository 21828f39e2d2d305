import embeddingCode from "../../../shaders/embedding.wgsl?raw";
import gradientCode from "../../../shaders/embeddingGradient.wgsl?raw";
import linksCode from "../../../shaders/embeddingLinks.wgsl?raw";
import { type Shader, spread } from "../../gpu";
import { apply } from "../apply";
import { isFloating } from "../dtype";
import { OperatorError, sizeOf } from "../shape";
import type { Tensor } from "../tensor";
import { fillInto } from "./copy";
import { to } from "./elementwise";
import type { Operator } from "./table";
import { reshape } from "./views";

type EmbeddingAttributes = {
  /** An index that gets no gradient; -1: none. */
  readonly padding: number;
  readonly scaleByFrequency: boolean;
};

const gridFor = (count: number) => spread(Math.ceil(count / 64));

const embeddingShader: Shader = { name: "embedding", code: embeddingCode, bindings: ["read", "read", "write"] };

/** Inputs: weight [V, D], indices int32 [N]; output [N, D], NaN for an index that isn't there. */
const embeddingRow: Operator<EmbeddingAttributes> = {
  name: "embedding",
  infer: ([weight, indices]) => ({ shape: [indices!.shape[0]!, weight!.shape[1]!], dtype: "float32" }),
  lower(lowering, { inputs: [weight, indices], shape }) {
    const output = lowering.result();
    const count = sizeOf(shape);
    if (count === 0) return output;
    lowering.dispatch({
      shader: embeddingShader,
      bindings: [lowering.dense(weight!), lowering.dense(indices!), output],
      uniforms: [count, shape[1]!, weight!.shape[0]!],
      grid: gridFor(count),
      work: 3 * count,
    });
    return output;
  },
  backward: ({ inputs: [weight, indices], gradient, attributes }) => [
    apply(gradientRow, [gradient, indices!], { ...attributes, rows: weight!.shape[0]! }),
    null,
  ],
};

type GradientAttributes = EmbeddingAttributes & { readonly rows: number };

const linksShader: Shader = { name: "embeddingLinks", code: linksCode, bindings: ["read", "write"] };
const gradientShader: Shader = {
  name: "embeddingGradient",
  code: gradientCode,
  bindings: ["read", "read", "read", "write"],
};

/** Inputs: the output's gradient [N, D], indices int32 [N]; output: the gradient of the weight [rows, D]. */
const gradientRow: Operator<GradientAttributes> = {
  name: "embeddingGradient",
  infer: ([gradient], { rows }) => ({ shape: [rows, gradient!.shape[1]!], dtype: "float32" }),
  lower(lowering, { inputs: [gradient, indices], attributes: { padding, scaleByFrequency, rows }, shape }) {
    const output = lowering.result();
    fillInto(lowering, 0, output);
    const [places = 0, columns = 0] = gradient!.shape;
    if (places * columns === 0 || sizeOf(shape) === 0) return output;
    const denseIndices = lowering.dense(indices!);
    const links = lowering.allocate([2, places], "int32");
    lowering.dispatch({
      shader: linksShader,
      bindings: [denseIndices, links],
      uniforms: [places, rows, { i32: padding }],
      grid: gridFor(places),
      work: places * Math.min(places, 2 * rows),
    });
    lowering.dispatch({
      shader: gradientShader,
      bindings: [lowering.dense(gradient!), denseIndices, links, output],
      uniforms: [places * columns, places, columns, scaleByFrequency ? 1 : 0],
      grid: gridFor(places * columns),
      work: 4 * places * columns,
    });
    return output;
  },
  backward({ inputs: [, indices], gradient, attributes: { padding, scaleByFrequency } }) {
    if (padding >= 0 || scaleByFrequency)
      throw new OperatorError(
        "embedding",
        "a gradient with paddingIdx or scaleGradByFreq can't be differentiated again; expected an embedding without them",
      );
    return [apply(embeddingRow, [gradient, indices!], { padding, scaleByFrequency }), null];
  },
};

export const embeddings: readonly Operator[] = [embeddingRow, gradientRow];

export interface EmbeddingOptions {
  /** An index whose row gets no gradient; negative ones count from the end. Default: none. */
  readonly paddingIdx?: number | null;
  /** Whether a row's gradient is divided by the number of its uses. Default: false. */
  readonly scaleGradByFreq?: boolean;
}

/** The padding index counted from the front; -1 for none. */
export function paddingIndex(operator: string, paddingIdx: number | null | undefined, rows: number): number {
  if (paddingIdx === null || paddingIdx === undefined) return -1;
  if (!Number.isInteger(paddingIdx) || paddingIdx < -rows || paddingIdx >= rows)
    throw new OperatorError(operator, `paddingIdx is ${paddingIdx}; expected an index of ${rows} rows`);
  return paddingIdx < 0 ? paddingIdx + rows : paddingIdx;
}

/**
 * torch.nn.functional.embedding: rows of a table by their indices. The gradients of a row that is used many times are
 * added in the order of its uses.
 * @param indices int32 of any shape.
 * @param weight floats [V, D].
 * @returns [...indices.shape, D]; an index out of [0, V) gives NaN.
 */
export function embedding(
  indices: Tensor,
  weight: Tensor,
  { paddingIdx, scaleGradByFreq = false }: EmbeddingOptions = {},
): Tensor {
  if (weight.ndim !== 2 || !isFloating(weight.dtype) || isFloating(indices.dtype))
    throw new OperatorError(
      "embedding",
      `the indices are ${indices} and the weight is ${weight}; expected int32 indices and floats [V, D]`,
    );
  const [rows, columns] = weight.shape as [number, number];
  const result = apply(embeddingRow, [weight, reshape(to(indices, "int32"), [indices.numel])], {
    padding: paddingIndex("embedding", paddingIdx, rows),
    scaleByFrequency: scaleGradByFreq,
  });
  return reshape(result, [...indices.shape, columns]);
}

import type { DType } from "../dtype";
import { broadcastShapes, describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { elementFunction } from "./elementwiseKernel";
import type { BackwardContext, Operator } from "./table";
import { sumTo } from "./views";

export interface ElementwiseRow {
  readonly name: string;
  /** WGSL statements that return the result from `a`, `b`, `c` and the scalars `s0`, `s1`. */
  readonly body: string;
  readonly helpers?: string;
  /** How many scalars its nodes have. */
  readonly scalars?: number;
  /** The result's type where it isn't the first operand's. */
  readonly result?: DType;
  /** The gradient of each operand, in the result's shape: the row sums what was broadcast. */
  readonly gradient?: (context: BackwardContext) => readonly (Tensor | null)[];
}

/** A row of the operator table from a row of elementwise formulas. Operands broadcast. */
export function elementwiseRow({ name, body, helpers = "", scalars = 0, result, gradient }: ElementwiseRow): Operator {
  const f = elementFunction({ name, body, helpers, scalars });
  return {
    name,
    takesNarrow: true,
    infer(inputs) {
      const shape = broadcastShapes(...inputs.map((input) => input.shape));
      if (!shape)
        throw new OperatorError(
          name,
          `the shapes ${inputs.map((input) => describeShape(input.shape)).join(" and ")} don't broadcast; ` +
            "expected sizes that are equal or 1, counted from the last dimension",
        );
      return { shape, dtype: result ?? inputs[name === "where" ? 1 : 0]!.dtype };
    },
    lower: (lowering, { inputs, scalars }) => lowering.elementwise(f, inputs, scalars),
    ...(gradient && {
      backward: (context) =>
        gradient(context).map((of, i) => (of && context.needs[i] ? sumTo(of, context.inputs[i]!.shape) : null)),
    }),
  };
}

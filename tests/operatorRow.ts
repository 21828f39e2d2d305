import type { Factors, max, Operand, Tensor, VarianceOptions } from "../src/tensor/index";
import type { ReferenceCall } from "./referenceCall";
import type { ReferenceCase, Tolerance } from "./referenceCase";

type Outputs = Tensor | readonly Tensor[];

/** How one of PyTorch's operators is called in Ringlet. */
export interface OperatorRow {
  /** PyTorch's parameters, in order. */
  readonly parameters: readonly string[];
  /** The outputs, in PyTorch's order. */
  readonly call: (call: ReferenceCall) => Outputs | Promise<Outputs>;
  /** Bounds other than the reference's, with their reason; for all cases, or those that `holdsFor` names. */
  readonly tolerance?: Tolerance & {
    readonly reason: string;
    readonly holdsFor?: (reference: ReferenceCase) => boolean;
  };
}

export const row = (parameters: string, call: OperatorRow["call"]): OperatorRow => ({
  parameters: parameters.split(" ").filter((name) => name !== ""),
  call,
});

export const unary = (of: (input: Tensor) => Tensor): OperatorRow => row("input", (a) => of(a.tensor("input")));
export const binary = (of: (input: Operand, other: Operand) => Tensor): OperatorRow =>
  row("input other", (a) => of(a.operand("input"), a.operand("other")));
export const logical = (of: (input: Tensor, other: Tensor) => Tensor): OperatorRow =>
  row("input other", (a) => of(a.tensor("input"), a.tensor("other")));
export const reduction = (
  of: (input: Tensor, dim: number | readonly number[] | null, keepdim: boolean) => Tensor,
): OperatorRow => row("input dim keepdim", (a) => of(a.tensor("input"), a.numbers("dim"), a.boolean("keepdim", false)));
export const indexReduction = (of: (input: Tensor, dim: number | null, keepdim: boolean) => Tensor): OperatorRow =>
  row("input dim keepdim", (a) => of(a.tensor("input"), a.optionalNumber("dim"), a.boolean("keepdim", false)));

/** max and min: of all values, along a dimension with indices, or of two tensors. */
export const extreme = (of: typeof max): OperatorRow =>
  row("input dim keepdim", (a) => {
    const input = a.tensor("input");
    if (!a.has("dim")) return of(input);
    const dim = a.operand("dim");
    if (typeof dim !== "number") return of(input, dim);
    const { values, indices } = of(input, dim, a.boolean("keepdim", false));
    return [values, indices];
  });

/** var, std and the like. PyTorch also takes unbiased as the second argument, and correction in its place. */
export const variance = (
  of: (input: Tensor, dim: number | readonly number[] | null, options: VarianceOptions) => Outputs,
): OperatorRow =>
  row("input dim unbiased keepdim correction", (a) => {
    const unbiased = a.isBoolean("dim") ? a.boolean("dim", true) : a.boolean("unbiased", true);
    const dim = a.isBoolean("dim") ? null : a.numbers("dim");
    const correction = a.number("correction", unbiased ? 1 : 0);
    return of(a.tensor("input"), dim, { correction, keepdim: a.boolean("keepdim", false) });
  });

/** addmm and its like: a sum of the input and a product. @param operands the names of the product's two. */
export const product = (
  operands: string,
  of: (input: Tensor, first: Tensor, second: Tensor, factors: Factors) => Tensor,
): OperatorRow =>
  row(`input ${operands} beta alpha`, (a) => {
    const [first = "", second = ""] = operands.split(" ");
    return of(a.tensor("input"), a.tensor(first), a.tensor(second), {
      beta: a.number("beta", 1),
      alpha: a.number("alpha", 1),
    });
  });

import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { matmul } from "./matrix";
import { floating } from "./promotion";
import { diagonal } from "./rearranging";
import { sum } from "./reduction";
import { expand, permute, reshape } from "./views";

/** A tensor whose dimensions have labels: letters, and "0", "1", ... for those of an ellipsis, from the last. */
interface Labelled {
  readonly tensor: Tensor;
  readonly labels: readonly string[];
}

/**
 * Einstein's summation: `einsum("bij,bjk->bik", a, b)`. Labels that the result lacks are summed over; without `->` the
 * result has the labels that occur once, in alphabetical order. An ellipsis stands for dimensions that broadcast.
 */
export function einsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  const [inputs = "", output] = equation.replaceAll(/\s/g, "").split("->");
  const terms = inputs.split(",");
  if (terms.length !== operands.length)
    throw new OperatorError(
      "einsum",
      `the equation "${equation}" has ${terms.length} operands and the call ${operands.length}; expected as many`,
    );
  const labelled = terms.map((term, i) => withLabels(equation, term, operands[i]!));
  const sizes = sizesOf(equation, labelled);
  const ellipsis = Math.max(0, ...labelled.map(({ labels }) => labels.filter(isEllipsis).length));
  const result = output === undefined ? impliedOutput(labelled, ellipsis) : labelsOf(output, ellipsis);
  for (const label of result)
    if (!sizes.has(label) || result.indexOf(label) !== result.lastIndexOf(label))
      throw new OperatorError(
        "einsum",
        `the equation "${equation}" has ${label} in its result; expected labels of its operands, each once`,
      );
  let total = labelled.map((operand) => withoutRepeats(operand)).map((operand) => broadcastTo(operand, sizes));
  while (total.length > 1) {
    const [a, b, ...rest] = total;
    const needed = new Set([...result, ...rest.flatMap(({ labels }) => labels)]);
    total = [
      contract(summedOver(a!, [b!.labels, [...needed]]), summedOver(b!, [a!.labels, [...needed]]), needed),
      ...rest,
    ];
  }
  const { tensor, labels } = summedOver(total[0]!, [result]);
  return permute(
    tensor,
    result.map((label) => labels.indexOf(label)),
  );
}

const isEllipsis = (label: string): boolean => label >= "0" && label <= "9";

/** The labels of a term; `count` dimensions are its ellipsis. */
function labelsOf(term: string, count: number): string[] {
  const [before = "", after] = term.split("...");
  if (after === undefined) return [...before];
  return [...before, ...Array.from({ length: count }, (_, i) => String(count - 1 - i)), ...after];
}

function withLabels(equation: string, term: string, operand: Tensor): Labelled {
  const named = term.replace("...", "").length;
  const labels = labelsOf(term, operand.ndim - named);
  if (!/^[a-zA-Z]*(\.\.\.)?[a-zA-Z]*$/.test(term) || labels.length !== operand.ndim)
    throw new OperatorError(
      "einsum",
      `the operand "${term}" of "${equation}" has shape ${describeShape(operand.shape)}; expected a letter for each dimension, or "..." for some`,
    );
  return { tensor: floating(operand), labels };
}

/** The size of each label; a dimension of size 1 goes with any. */
function sizesOf(equation: string, operands: readonly Labelled[]): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const { tensor, labels } of operands)
    for (const [d, label] of labels.entries()) {
      const size = tensor.shape[d]!;
      const known = sizes.get(label) ?? 1;
      if (known !== 1 && size !== 1 && known !== size)
        throw new OperatorError(
          "einsum",
          `the label ${label} of "${equation}" has sizes ${known} and ${size}; expected equal ones, or 1`,
        );
      sizes.set(label, known === 1 ? size : known);
    }
  return sizes;
}

function impliedOutput(operands: readonly Labelled[], ellipsis: number): string[] {
  const letters = operands.flatMap(({ labels }) => labels.filter((label) => !isEllipsis(label)));
  const once = letters.filter((label, i) => letters.indexOf(label) === i && letters.lastIndexOf(label) === i);
  return [...labelsOf("...", ellipsis), ...once.sort()];
}

/** Takes diagonals, so that each label occurs once. */
function withoutRepeats({ tensor, labels }: Labelled): Labelled {
  const again = labels.findIndex((label, d) => labels.indexOf(label) !== d);
  if (again < 0) return { tensor, labels };
  const label = labels[again]!;
  const rest = labels.filter((_, d) => d !== again && d !== labels.indexOf(label));
  return withoutRepeats({
    tensor: diagonal(tensor, 0, labels.indexOf(label), again),
    labels: [...rest, label],
  });
}

function broadcastTo({ tensor, labels }: Labelled, sizes: ReadonlyMap<string, number>): Labelled {
  return {
    tensor: expand(
      tensor,
      labels.map((label) => sizes.get(label)!),
    ),
    labels,
  };
}

/** Sums over the labels that none of the lists has. */
function summedOver({ tensor, labels }: Labelled, needed: readonly (readonly string[])[]): Labelled {
  const gone = labels.flatMap((label, d) => (needed.some((list) => list.includes(label)) ? [] : [d]));
  if (gone.length === 0) return { tensor, labels };
  return { tensor: sum(tensor, gone), labels: labels.filter((_, d) => !gone.includes(d)) };
}

/** One batched product: labels of both that are needed are its batch, those that aren't are its inner dimension. */
function contract(a: Labelled, b: Labelled, needed: ReadonlySet<string>): Labelled {
  const shared = a.labels.filter((label) => b.labels.includes(label));
  const batch = shared.filter((label) => needed.has(label));
  const inner = shared.filter((label) => !needed.has(label));
  const rows = a.labels.filter((label) => !shared.includes(label));
  const columns = b.labels.filter((label) => !shared.includes(label));
  const sizeIn = ({ tensor, labels }: Labelled, list: readonly string[]) =>
    list.map((label) => tensor.shape[labels.indexOf(label)]!);
  const product = (list: readonly number[]) => list.reduce((total, size) => total * size, 1);
  const arranged = (of: Labelled, ...groups: readonly (readonly string[])[]) =>
    reshape(
      permute(
        of.tensor,
        groups.flat().map((label) => of.labels.indexOf(label)),
      ),
      groups.map((group) => product(sizeIn(of, group))),
    );
  const result = matmul(arranged(a, batch, rows, inner), arranged(b, batch, inner, columns));
  return {
    tensor: reshape(result, [...sizeIn(a, batch), ...sizeIn(a, rows), ...sizeIn(b, columns)]),
    labels: [...batch, ...rows, ...columns],
  };
}

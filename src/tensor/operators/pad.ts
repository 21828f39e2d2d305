import { describeShape, OperatorError } from "../shape";
import type { Tensor } from "../tensor";
import { full } from "./creation";
import { sparseMap, type Tap } from "./sparseMap";
import { cat, narrow } from "./views";

export type PaddingMode = "constant" | "reflect" | "replicate" | "circular";

/**
 * torch.nn.functional.pad.
 * @param padding how many entries to add before and behind the last dimension, then the last but one, and so on;
 * negative numbers take entries away.
 * @param value what is added in the mode "constant".
 */
export function pad(input: Tensor, padding: readonly number[], mode: PaddingMode = "constant", value = 0): Tensor {
  if (padding.length % 2 !== 0 || padding.length > 2 * input.ndim || !padding.every(Number.isInteger))
    throw new OperatorError(
      "pad",
      `padding is [${padding.join(", ")}]; expected two integers for each of at most ${input.ndim} dimensions`,
    );
  let result = input;
  for (let pair = 0; 2 * pair < padding.length; pair++) {
    const dim = input.ndim - 1 - pair;
    const [before, behind] = [padding[2 * pair]!, padding[2 * pair + 1]!];
    if (before === 0 && behind === 0) continue;
    result = padded(result, dim, before, behind, mode, value);
  }
  return result;
}

function padded(input: Tensor, dim: number, before: number, behind: number, mode: PaddingMode, value: number): Tensor {
  const size = input.shape[dim]!;
  const most = mode === "reflect" ? size - 1 : mode === "circular" ? size : Number.POSITIVE_INFINITY;
  if (size + before + behind < 0 || Math.max(before, behind) > most || (mode !== "constant" && size === 0))
    throw new OperatorError(
      "pad",
      `padding ${before} and ${behind} entries in the mode ${mode} to dimension ${dim} of ${describeShape(input.shape)}; ` +
        `expected ${most < Number.POSITIVE_INFINITY ? `at most ${most}` : "some entry to remain"}`,
    );
  const start = Math.max(0, -before);
  const kept = narrow(input, dim, start, size - start - Math.max(0, -behind));
  if (mode === "constant") {
    const filled = (length: number) =>
      length > 0 ? [full(input.shape.with(dim, length), value, { dtype: input.dtype })] : [];
    const parts = [...filled(before), kept, ...filled(behind)];
    return parts.length > 1 ? cat(parts, dim) : kept;
  }
  const [left, right] = [Math.max(0, before), Math.max(0, behind)];
  return sparseMap(kept, dim, `pad ${mode} ${left} ${right}`, (inputs) =>
    Array.from({ length: left + inputs + right }, (_, at): Tap[] => [
      { input: sourceOf(at - left, inputs, mode), weight: 1 },
    ]),
  );
}

/** The entry that stands at a place, which may lie outside. */
function sourceOf(at: number, size: number, mode: Exclude<PaddingMode, "constant">): number {
  switch (mode) {
    case "replicate":
      return Math.min(size - 1, Math.max(0, at));
    case "circular":
      return ((at % size) + size) % size;
    case "reflect": {
      const inside = Math.abs(at);
      return inside < size ? inside : 2 * (size - 1) - inside;
    }
  }
}

/** Median with quartiles: what half of all measurements lie between. */
export interface Spread {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
  readonly count: number;
}

/** The quantile `q` of 0 to 1, interpolated between neighbours as NumPy's default does. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) throw new RangeError("There is no quantile of no values.");
  const sorted = values.toSorted((a, b) => a - b);
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (position - below) * (sorted[above]! - sorted[below]!);
}

export function spread(values: readonly number[]): Spread {
  return {
    median: quantile(values, 0.5),
    lowerQuartile: quantile(values, 0.25),
    upperQuartile: quantile(values, 0.75),
    count: values.length,
  };
}

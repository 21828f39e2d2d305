/**
 * Chooses at most about `limit` of the first `length` values so that the drawn line keeps its shape: the least and the
 * greatest of each of limit/2 equal stretches, and the last value. NaNs are passed over.
 * @returns ascending indices
 */
export function decimate(values: ArrayLike<number>, length: number, limit: number): number[] {
  const chosen: number[] = [];
  const stretches = Math.max(1, Math.floor(limit / 2));
  if (length <= stretches * 2) {
    for (let i = 0; i < length; i += 1) if (!Number.isNaN(values[i])) chosen.push(i);
    return chosen;
  }
  for (let stretch = 0; stretch < stretches; stretch += 1) {
    const from = Math.floor((stretch * length) / stretches);
    const to = Math.floor(((stretch + 1) * length) / stretches);
    let least = -1;
    let greatest = -1;
    for (let i = from; i < to; i += 1) {
      const value = values[i]!;
      if (Number.isNaN(value)) continue;
      if (least < 0 || value < values[least]!) least = i;
      if (greatest < 0 || value > values[greatest]!) greatest = i;
    }
    if (least < 0) continue;
    chosen.push(Math.min(least, greatest));
    if (least !== greatest) chosen.push(Math.max(least, greatest));
  }
  const last = length - 1;
  if (chosen.at(-1) !== last && !Number.isNaN(values[last])) chosen.push(last);
  return chosen;
}

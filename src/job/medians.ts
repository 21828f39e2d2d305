/** The median of the last few values; 0 before the first. Keeps its memory. */
export class RunningMedian {
  readonly #values: Float64Array;
  readonly #sorted: Float64Array;
  #count = 0;

  constructor(window: number) {
    this.#values = new Float64Array(window);
    this.#sorted = new Float64Array(window);
  }

  add(value: number): void {
    this.#values[this.#count % this.#values.length] = value;
    this.#count += 1;
  }

  clear(): void {
    this.#count = 0;
  }

  get count(): number {
    return this.#count;
  }

  get value(): number {
    const length = Math.min(this.#count, this.#values.length);
    if (length === 0) return 0;
    const sorted = this.#sorted.subarray(0, length);
    sorted.set(this.#values.subarray(0, length));
    sorted.sort();
    const middle = length >> 1;
    return length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  }
}

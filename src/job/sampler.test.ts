import { describe, expect, it } from "vitest";
import { Sampler } from "./sampler";

describe("Sampler", () => {
  it("runs through every sample once in each epoch, in another order each time", () => {
    const sampler = new Sampler(7, 100, 30);
    const stream: number[] = [];
    for (let step = 0; step < 10; step += 1) stream.push(...sampler.indices(step, 0, 30));
    const epochs = [0, 1, 2].map((epoch) => stream.slice(epoch * 100, (epoch + 1) * 100));
    for (const epoch of epochs)
      expect([...epoch].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(epochs[0]).not.toEqual(epochs[1]);
    expect(epochs[1]).not.toEqual(epochs[2]);
  });

  it("gives the same batch whatever was asked before and in whatever slices", () => {
    const first = new Sampler(3, 64, 48);
    const second = new Sampler(3, 64, 48);
    for (let step = 0; step < 9; step += 1) first.indices(step, 0, 48);
    for (const step of [5, 0, 900, 2]) {
      const whole = [...first.indices(step, 0, 48)];
      expect([...second.indices(step, 0, 11), ...second.indices(step, 11, 0), ...second.indices(step, 11, 37)]).toEqual(
        whole,
      );
    }
  });

  it("wraps over several epochs when the batch is larger than the data set", () => {
    const indices = [...new Sampler(1, 3, 8).indices(1, 0, 8)];
    expect(indices).toHaveLength(8);
    // Positions 8 to 16: one sample of epoch 2, all of epochs 3 and 4, one of epoch 5.
    expect([...indices.slice(1, 4)].sort()).toEqual([0, 1, 2]);
    expect([...indices.slice(4, 7)].sort()).toEqual([0, 1, 2]);
  });

  it("follows from the seed", () => {
    expect(new Sampler(1, 1000, 50).indices(0, 0, 50)).not.toEqual(new Sampler(2, 1000, 50).indices(0, 0, 50));
    // Every machine must agree for ever: a change here changes every job's curve.
    expect([...new Sampler(1, 60000, 8).indices(12345, 0, 8)]).toMatchInlineSnapshot(`
      [
        41009,
        51802,
        26388,
        57772,
        44936,
        56172,
        50402,
        4182,
      ]
    `);
  });

  it("puts every sample at every place about equally often", () => {
    const counts = new Array<number>(10).fill(0);
    for (let seed = 0; seed < 5000; seed += 1) counts[new Sampler(seed, 10, 1).indices(0, 0, 1)[0]!]! += 1;
    // Binomial with mean 500 and standard deviation 21: seven deviations.
    for (const count of counts) expect(Math.abs(count - 500)).toBeLessThan(150);
  });
});

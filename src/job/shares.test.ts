import { describe, expect, it } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { gainOfSharing, microBatchSizes, shareOut, splitIntoMicroBatches } from "./shares";

describe("shareOut", () => {
  it("covers the whole without gaps or overlaps for any weights", () => {
    for (let seed = 1; seed <= 2000; seed += 1) {
      const random = seededRandom(seed);
      const weights = Array.from({ length: 1 + Math.floor(random() * 9) }, () =>
        random() < 0.2 ? 0 : 10 ** (random() * 12 - 6),
      );
      const whole = Math.floor(random() ** 3 * 3000);
      let next = 0;
      const shares = shareOut(whole, weights);
      for (const { from, count } of shares) {
        expect(from, `seed ${seed}`).toBe(next);
        expect(count, `seed ${seed}`).toBeGreaterThanOrEqual(0);
        next += count;
      }
      expect(next, `seed ${seed}`).toBe(whole);
      if (whole >= 16 * weights.length) {
        const last = shares.findLastIndex(({ count }) => count > 0);
        shares.forEach(({ count }, rank) => {
          if (rank !== last) expect(count % 16, `seed ${seed}`).toBe(0);
        });
      }
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      if (total > 0 && whole >= 16 * weights.length)
        shares.forEach(({ count }, rank) => {
          // Largest remainder is less than a unit off; the last share may also carry the rest.
          expect(Math.abs(count - (whole * weights[rank]!) / total), `seed ${seed}`).toBeLessThan(33);
        });
    }
  });

  it("halves the batch between two equal members", () => {
    expect(shareOut(256, [1, 1])).toEqual([
      { from: 0, count: 128 },
      { from: 128, count: 128 },
    ]);
  });

  it("follows the weights in whole units", () => {
    expect(shareOut(256, [3, 1]).map(({ count }) => count)).toEqual([192, 64]);
    expect(shareOut(100, [1, 1, 1]).map(({ count }) => count)).toEqual([32, 32, 36]);
  });

  it("takes smaller units for a small batch and leaves members without samples when there are too few", () => {
    expect(shareOut(20, [1, 1]).map(({ count }) => count)).toEqual([8, 12]);
    expect(shareOut(2, [1, 1, 1]).map(({ count }) => count)).toEqual([1, 1, 0]);
    expect(shareOut(64, [0, 1]).map(({ count }) => count)).toEqual([0, 64]);
  });

  it("refuses impossible weights with a sentence", () => {
    expect(() => shareOut(4, [])).toThrow("Shares need weights");
    expect(() => shareOut(4, [1, Number.NaN])).toThrow("Shares need weights of at least 0; they are [1, NaN].");
  });
});

describe("splitIntoMicroBatches", () => {
  it("covers every count with known sizes, only the last one short, wasting little", () => {
    for (let count = 0; count <= 1100; count += 1) {
      const parts = splitIntoMicroBatches(count);
      expect(parts.reduce((sum, { rows }) => sum + rows, 0)).toBe(count);
      parts.forEach(({ size, rows }, index) => {
        expect(microBatchSizes).toContain(size);
        if (index < parts.length - 1) expect(rows).toBe(size);
        else expect(size - rows).toBeLessThanOrEqual(Math.max(15, rows / 8));
      });
    }
  });

  it("prefers one masked micro-batch to many small ones", () => {
    expect(splitIntoMicroBatches(250)).toEqual([{ size: 256, rows: 250 }]);
    expect(splitIntoMicroBatches(600)).toEqual([
      { size: 256, rows: 256 },
      { size: 256, rows: 256 },
      { size: 64, rows: 64 },
      { size: 32, rows: 24 },
    ]);
  });
});

describe("gainOfSharing", () => {
  it("is what the slowest member would save", () => {
    // 128 samples at 100/s take 1.28 s; 192 at 300/s and 64 at 100/s take 0.64 s.
    expect(gainOfSharing([128, 128], [300, 100])).toBe(0.5);
    expect(gainOfSharing([192, 64], [300, 100])).toBe(0);
    expect(gainOfSharing([128, 128], [300, 0])).toBe(0);
  });
});

import { expect, test } from "vitest";
import { maxWorkgroups, spread } from "./dispatchGrid";

test.each([0, 1, 65_535, 65_536, 131_071, 1_000_003, maxWorkgroups ** 2, maxWorkgroups ** 2 + 1])(
  "spreads %d workgroups without passing a dimension's limit, and wastes less than a row a plane",
  (workgroups) => {
    const [x, y, z] = spread(workgroups);
    expect(Math.max(x, y, z)).toBeLessThanOrEqual(maxWorkgroups);
    expect(x * y * z).toBeGreaterThanOrEqual(workgroups);
    expect(x * y * z - workgroups).toBeLessThan(y * z * 2 + x * z);
  },
);

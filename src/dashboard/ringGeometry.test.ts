import { expect, test } from "vitest";
import { arcBetween, discRadius, pointOn, ringCircle } from "./ringGeometry";

const circle = { x: 100, y: 50, radius: 40 };

test("turns go clockwise from the top", () => {
  expect([0, 0.25, 0.5, 0.75].map((turn) => pointOn(circle, turn))).toEqual([
    { x: 100, y: 10 },
    { x: 140, y: 50 },
    { x: 100, y: 90 },
    { x: 60, y: 50 },
  ]);
});

test("an arc takes the long way only when it covers more than half the circle", () => {
  expect(arcBetween(circle, 0, 0.25, 0)).toBe("M100 10A40 40 0 0 1 140 50");
  expect(arcBetween(circle, 0, 0.75, 0)).toBe("M100 10A40 40 0 1 1 60 50");
  expect(arcBetween(circle, -0.25, 0.5, 0.25)).toBe("M100 10A40 40 0 0 1 140 50");
});

test("a member with twice its even share has twice the area, within bounds", () => {
  const even = discRadius(0.25, 4);
  expect(discRadius(0.5, 4) ** 2 / even ** 2).toBeCloseTo(2, 2);
  expect([discRadius(0, 4), discRadius(1, 4)]).toEqual([13, 30]);
});

test("neighbours' discs never touch, whatever their shares", () => {
  for (const members of [2, 3, 5, 9, 16, 24]) {
    const spacing = 2 * ringCircle.radius * Math.sin(Math.PI / members);
    expect(discRadius(1, members) * 2).toBeLessThan(spacing);
  }
});

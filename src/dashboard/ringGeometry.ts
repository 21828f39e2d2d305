export interface Circle {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Two figures after the point are finer than a pixel. */
const round = (value: number): number => Math.round(value * 100) / 100;

/** The point at `turn` (0 to 1, clockwise from the top) of a circle. */
export function pointOn(circle: Circle, turn: number): Point {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return {
    x: round(circle.x + circle.radius * Math.cos(angle)),
    y: round(circle.y + circle.radius * Math.sin(angle)),
  };
}

/** SVG path along the circle, clockwise from turn `from` to `to`, less `gap` turns at each end. */
export function arcBetween(circle: Circle, from: number, to: number, gap: number): string {
  const start = pointOn(circle, from + gap);
  const end = pointOn(circle, to - gap);
  const large = to - from - 2 * gap > 0.5 ? 1 : 0;
  return `M${start.x} ${start.y}A${circle.radius} ${circle.radius} 0 ${large} 1 ${end.x} ${end.y}`;
}

/** Radius of a member's disc: its area follows its share of the batch, between bounds. */
export function discRadius(share: number, members: number): number {
  const relative = share * members;
  return round(Math.min(30, Math.max(13, 20 * Math.sqrt(relative))));
}

export interface Circle {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where the members stand in the ring's drawing. */
export const ringCircle: Circle = { x: 200, y: 160, radius: 92 };

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

/** Radius of a member's disc: its area follows its share of the batch, between bounds that keep neighbours apart. */
export function discRadius(share: number, members: number): number {
  const room = (Math.PI * ringCircle.radius) / members - 8;
  const most = Math.max(8, Math.min(30, room));
  const even = Math.min(20, most * 0.75);
  return round(Math.min(most, Math.max(even * 0.65, even * Math.sqrt(share * members))));
}

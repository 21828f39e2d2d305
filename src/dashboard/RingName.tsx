import { type Point, ringCircle } from "./ringGeometry";
import { wrapName } from "./wrapName";

interface RingNameProps {
  readonly name: string;
  /** Of the member's disc. */
  readonly center: Point;
  readonly radius: number;
}

const lineHeight = 17;

/** A member's name outside the ring: beside its disc, or above or below it where that is at the top or the bottom. */
export function RingName({ name, center, radius }: RingNameProps) {
  const sideways = center.x - ringCircle.x;
  if (Math.abs(sideways) < 8) {
    const above = center.y < ringCircle.y;
    return (
      <text
        class="ringName"
        x={center.x}
        y={above ? center.y - radius - 9 : center.y + radius + 21}
        text-anchor="middle"
      >
        {wrapName(name, 22, 1)[0]}
      </text>
    );
  }
  const x = center.x + Math.sign(sideways) * (radius + 9);
  const lines = wrapName(name, 10, 2);
  return (
    <text class="ringName" text-anchor={sideways > 0 ? "start" : "end"}>
      {lines.map((line, at) => (
        <tspan key={line} x={x} y={center.y + 5 + (at - (lines.length - 1) / 2) * lineHeight}>
          {line}
        </tspan>
      ))}
    </text>
  );
}

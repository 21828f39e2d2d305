import { arcBetween, pointOn } from "./ringGeometry";

const nodes = [0, 1, 2, 3, 4];
const circle = { x: 160, y: 160, radius: 112 };

/** Five machines in a ring, as decoration. */
export function RingIllustration() {
  return (
    <svg class="illustration" viewBox="0 0 320 320" aria-hidden="true" focusable="false">
      {nodes.map((node) => (
        <path
          key={node}
          class={`link member${node}`}
          d={arcBetween(circle, node / 5, (node + 1) / 5, 0.048)}
          fill="none"
          stroke-width="3"
        />
      ))}
      {nodes.map((node) => {
        const { x, y } = pointOn(circle, node / 5);
        return (
          <g key={node} class={`machine member${node}`} transform={`translate(${x} ${y})`}>
            <rect x="-25" y="-19" width="50" height="33" rx="5" />
            <path d="M-14 20h28M0 14v6" />
            <path class="machineCurve" d="M-15 -9c5 14 12 16 30 17" />
          </g>
        );
      })}
    </svg>
  );
}

import { formatMegabytesPerSecond, formatPercent, plural } from "./format";
import { RingName } from "./RingName";
import { arcBetween, ringCircle as circle, discRadius, pointOn } from "./ringGeometry";
import { colorOf, members, ring } from "./state";

/** More names and arrows than this would overlap; the table has them all. */
const detailUpTo = 12;

/** The members in ring order; gradients go round along the arrows. */
export function RingDiagram() {
  const present = ring.value;
  const count = present.length;
  const arrows = count >= 2 && count <= detailUpTo;
  const waiting = members.value.filter((member) => member.state === "joining").length;
  const traffic = present.reduce((sum, member) => sum + member.bytesOutPerSecond, 0);
  const names = present.map((member) => `${member.name} (${formatPercent(member.share)})`).join(", then ");
  const summary = count === 0 ? "Nobody is in the ring." : `Ring of ${plural(count, "member")}: ${names}.`;
  return (
    <section class="ringPanel panel">
      <h2>Ring</h2>
      <svg class="ring" viewBox="0 10 400 300" role="img" aria-label={summary}>
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="6"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path class="arrowHead" d="M0 0l8 4-8 4z" />
          </marker>
        </defs>
        {!arrows && <circle class="ringTrack" cx={circle.x} cy={circle.y} r={circle.radius} />}
        {arrows &&
          present.map((member, at) => {
            const next = present[(at + 1) % count];
            const gapHere = (discRadius(member.share, count) + 6) / (2 * Math.PI * circle.radius);
            const gapThere = (discRadius(next?.share ?? 0, count) + 8) / (2 * Math.PI * circle.radius);
            return (
              <path
                key={member.id}
                class="ringLink"
                d={arcBetween(circle, at / count + gapHere, (at + 1) / count - gapThere, 0)}
                marker-end="url(#arrow)"
              />
            );
          })}
        {present.map((member, at) => {
          const center = pointOn(circle, at / count);
          const radius = discRadius(member.share, count);
          return (
            <g key={member.id} class={`ringMember member${colorOf(member.id)} ${member.state}`}>
              <circle cx={center.x} cy={center.y} r={radius} />
              <text class="ringRank" x={center.x} y={center.y} dy="0.36em">
                {member.rank}
              </text>
              {count <= detailUpTo && (
                <RingName name={member.self ? "you" : member.name} center={center} radius={radius} />
              )}
            </g>
          );
        })}
        <text class="ringCount" x={circle.x} y={circle.y - 4}>
          {count}
        </text>
        <text class="ringCaption" x={circle.x} y={circle.y + 20}>
          {count === 1 ? "member" : "members"}
        </text>
        <text class="ringCaption" x={circle.x} y={circle.y + 40}>
          {waiting > 0 ? `${waiting} joining` : count > 1 ? `${formatMegabytesPerSecond(traffic)} MB/s` : ""}
        </text>
      </svg>
    </section>
  );
}

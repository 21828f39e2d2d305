import type { MemberState, MemberView } from "../job/snapshot";
import { formatCount, formatGpu, formatMegabytesPerSecond, formatPercent, plural, unknown } from "./format";
import { colorOf, members, snapshot } from "./state";

const stateLabels: Readonly<Record<MemberState, string>> = {
  joining: "Joining",
  training: "Training",
  paused: "Paused",
  lost: "Lost",
};

/** In ring order, those without a place last. */
const byRank = (a: MemberView, b: MemberView): number =>
  (a.rank ?? Number.POSITIVE_INFINITY) - (b.rank ?? Number.POSITIVE_INFINITY) || a.name.localeCompare(b.name);

/** Who takes part, with what, and how much of the work each does. */
export function MemberTable() {
  const watchers = snapshot.value?.watchers ?? 0;
  return (
    <section class="members panel">
      <div class="panelHead">
        <h2>Members</h2>
        {watchers > 0 && <p class="hint">{plural(watchers, "tab watches", "tabs watch")}</p>}
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col">Name</th>
            <th scope="col">GPU</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Share
            </th>
            <th scope="col" class="number">
              Samples
            </th>
            <th scope="col" class="number">
              In, MB/s
            </th>
            <th scope="col" class="number">
              Out, MB/s
            </th>
          </tr>
        </thead>
        <tbody>
          {[...members.value].sort(byRank).map((member) => (
            <MemberRow key={member.id} member={member} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function MemberRow({ member }: { readonly member: MemberView }) {
  return (
    <tr data-testid="member" data-member-id={member.id} data-rank={member.rank ?? undefined} data-state={member.state}>
      <td class="rank">
        <span class={`rankDisc member${colorOf(member.id)} ${member.state}`}>
          <span>{member.rank ?? unknown}</span>
        </span>
      </td>
      <th scope="row">
        <span class="memberName">{member.name}</span>
        {member.self && <span class="mark">you</span>}
        {member.coordinator && (
          <span class="mark" title="Issues the ring's generations">
            coordinator
          </span>
        )}
      </th>
      <td data-label="GPU">{formatGpu(member.gpu)}</td>
      <td data-label="State" class={`state ${member.state}`}>
        {stateLabels[member.state]}
      </td>
      <td data-label="Share" class="number">
        {member.rank === null ? unknown : formatPercent(member.share)}
      </td>
      <td data-label="Samples" class="number">
        {formatCount(member.samples)}
      </td>
      <td data-label="In, MB/s" class="number">
        {formatMegabytesPerSecond(member.bytesInPerSecond)}
      </td>
      <td data-label="Out, MB/s" class="number">
        {formatMegabytesPerSecond(member.bytesOutPerSecond)}
      </td>
    </tr>
  );
}

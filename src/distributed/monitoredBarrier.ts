import { GroupWork } from "./groupWork";
import { firstReservedTag } from "./mailbox";
import { CollectiveError, type Work } from "./work";
import type { World } from "./world";

const arrivalTag = firstReservedTag;
const verdictTag = firstReservedTag + 1;
/** The others wait for rank 0's word longer than it waits for them. */
const graceMilliseconds = 5000;
const verdictBytes = 16 * 1024;

/**
 * As torch.distributed.monitored_barrier: every rank tells the group's first that it is there, which then tells everyone who isn't.
 * @param ranks the group's ranks in the world.
 */
export function monitoredBarrier(
  world: World,
  group: number,
  ranks: readonly number[],
  timeoutMilliseconds: number,
): Work {
  const root = ranks[0]!;
  const title = `Rank ${world.rank}: monitoredBarrier`;
  const arrival = { group, tag: arrivalTag };
  const verdict = { group, tag: verdictTag };
  const others = ranks.filter((rank) => rank !== root);
  const nothing = new Uint8Array(0);
  return new GroupWork(title, async () => {
    if (world.rank !== root) {
      world.mailbox.sendBytes(world.linkTo(root), nothing, arrival, title);
      const wait = timeoutMilliseconds + graceMilliseconds;
      const word = await world.mailbox.receiveBytes(root, verdictBytes, verdict, `The word of rank ${root}`, wait);
      if (word.length > 0) throw new CollectiveError(new TextDecoder().decode(word));
      return;
    }
    const arrivals = await Promise.allSettled(
      others.map((rank) => world.mailbox.receiveBytes(rank, 0, arrival, `Rank ${rank}`, timeoutMilliseconds)),
    );
    const missing = others.filter((_, index) => arrivals[index]!.status === "rejected");
    const sentence =
      missing.length === 0
        ? ""
        : `Rank ${missing.join(", ")} of ${ranks.length} didn't come within ${timeoutMilliseconds / 1000} s.`;
    for (const rank of others.filter((other) => !missing.includes(other)))
      world.mailbox.sendBytes(world.linkTo(rank), new TextEncoder().encode(sentence), verdict, title);
    if (missing.length > 0) throw new CollectiveError(sentence);
  });
}

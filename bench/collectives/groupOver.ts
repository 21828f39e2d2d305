import { realClock } from "../../src/base/clock";
import { ProcessGroup } from "../../src/distributed/processGroup";
import { ChannelLink } from "../../src/transport/channelLink";
import type { Link, MemberId } from "../../src/transport/link";
import { memberId } from "../../src/transport/memberId";
import { ChannelPipe } from "../../src/transport/pipe";

const memberOfRank = (rank: number): MemberId => memberId((rank + 1).toString(16).padStart(32, "0"));

/** A process group over open channels to all other ranks, by their ranks. */
export function groupOver(rank: number, channels: ReadonlyMap<number, RTCDataChannel>): ProcessGroup {
  const links = new Map<MemberId, Link>();
  for (const [other, channel] of channels)
    links.set(
      memberOfRank(other),
      new ChannelLink({
        pipe: new ChannelPipe(channel),
        peer: memberOfRank(other),
        maxMessageBytes: 64 * 1024,
        clock: realClock,
        received: [],
      }),
    );
  const network = {
    self: memberOfRank(rank),
    links,
    onLink: null,
    onRefused: null,
    dial: () => Promise.reject(new Error("These ranks are linked from the beginning.")),
    close: (reason: string) => {
      for (const link of links.values()) link.close(reason);
    },
  };
  return new ProcessGroup({
    network,
    members: Array.from({ length: channels.size + 1 }, (_, one) => memberOfRank(one)),
  });
}

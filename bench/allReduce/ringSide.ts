// Ringlet's ring over Ringlet's links, each on a data channel of the same kind as the bare ones.
import { realClock } from "../../src/base/clock";
import { Ring } from "../../src/distributed/ring";
import { ChannelLink } from "../../src/transport/channelLink";
import type { Link, MemberId } from "../../src/transport/link";
import { memberId } from "../../src/transport/memberId";
import { ChannelPipe } from "../../src/transport/pipe";
import { connectionTo } from "./connections";

const memberOfRank = (rank: number): MemberId => memberId((rank + 1).toString(16).padStart(32, "0"));

export class RingSide {
  readonly #ring: Ring;
  readonly #links: ReadonlyMap<MemberId, Link>;
  #step = 0;

  /** The connections to all other ranks must be open. */
  constructor(rank: number, worldSize: number) {
    const links = new Map<MemberId, Link>();
    this.#links = links;
    const linkTo = (member: MemberId): Link => {
      const link = links.get(member);
      if (!link) throw new Error(`There is no link to member ${member}.`);
      return link;
    };
    const members = Array.from({ length: worldSize }, (_, index) => memberOfRank(index));
    const ring = new Ring({
      self: memberOfRank(rank),
      members,
      epoch: 1,
      send: (to, header, payload) => linkTo(to).send(header, payload),
      drained: (to) => linkTo(to).drained(),
    });
    this.#ring = ring;
    for (const [other, member] of members.entries()) {
      if (other === rank) continue;
      const { channel, peer } = connectionTo(other, "ring");
      const link = new ChannelLink({
        pipe: new ChannelPipe(channel),
        peer: member,
        maxMessageBytes: peer.sctp?.maxMessageSize ?? 64 * 1024,
        clock: realClock,
        received: [],
      });
      link.onFrame = (frame) => ring.receive(member, frame);
      link.onClose = (reason) => ring.abort(reason);
      links.set(member, link);
    }
  }

  /** Payload over all links so far. */
  get sentBytes(): number {
    let bytes = 0;
    for (const { counters } of this.#links.values()) bytes += counters.sentPayload;
    return bytes;
  }

  async allReduce(data: Float32Array<ArrayBuffer>): Promise<void> {
    this.#step += 1;
    await this.#ring.allReduce(data, { step: this.#step, channel: 0 }).wait();
  }
}
